package run

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func load(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func number(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return math.NaN()
}

func TestClassifyAsTheOriginal(t *testing.T) {
	var f struct {
		Cases []struct {
			In      []any    `json:"in"`
			Class   string   `json:"run_validity"`
			Reasons []string `json:"failure_reasons"`
		} `json:"cases"`
	}
	load(t, "classify_run.json", &f)
	if len(f.Cases) < 20 {
		t.Fatalf("%d cases", len(f.Cases))
	}
	for _, c := range f.Cases {
		n := Noise{number(c.In[0]), number(c.In[1]), int64(number(c.In[2])), number(c.In[3]), c.In[4].(bool), number(c.In[5])}
		class, reasons := Classify(n, true)
		if class != c.Class {
			t.Errorf("%v: %s, want %s", c.In, class, c.Class)
		}
		if diff := cmp.Diff(c.Reasons, reasons, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v: %s", c.In, diff)
		}
	}
}

func TestNotANumberIsNotClean(t *testing.T) {
	nan := math.NaN()
	for _, n := range []Noise{{ObserverCPU: nan}, {ObserverMemory: nan}, {BaselineCPU: nan}, {PeakTempC: nan}} {
		if class, reasons := Classify(n, false); class != Marginal || len(reasons) != 1 {
			t.Errorf("%+v: %s %v", n, class, reasons)
		}
		if class, _ := Classify(n, true); class != Clean {
			t.Errorf("%+v as the original: %s", n, class)
		}
	}
	if class, _ := Classify(Noise{ObserverCPU: nan, IOContention: true}, false); class != Contaminated {
		t.Error(class)
	}
}

func TestObserverEffectAsTheOriginal(t *testing.T) {
	var f struct {
		Cases []struct {
			Observer, Target [][3]float64
			Throttle         int64
			Baseline         float64
			Out              ObserverEffect
		} `json:"cases"`
	}
	load(t, "observer_effect.json", &f)
	samples := func(rows [][3]float64) (out []EffectSample) {
		for _, r := range rows {
			out = append(out, EffectSample{r[0], r[1], r[2]})
		}
		return out
	}
	if len(f.Cases) < 10 {
		t.Fatalf("%d cases", len(f.Cases))
	}
	for i, c := range f.Cases {
		got := NewObserverEffect(samples(c.Observer), samples(c.Target), c.Throttle, c.Baseline)
		if diff := cmp.Diff(c.Out, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("case %d: %s", i, diff)
		}
	}
}

func TestHeatCountsWithASummary(t *testing.T) {
	e := ObserverEffect{CPUMax: 50, CPUMean: 1}
	if class, _ := Classify(e.Noise(0), false); class != Clean {
		t.Errorf("mean counts, not max: %s", class)
	}
	if class, _ := Classify(e.Noise(99), false); class != Contaminated {
		t.Errorf("99 degrees: %s", class)
	}
}
