package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/run"
)

var fixedTime = time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("east", 3600))

const sweepFile = `
experiment: {name: sweep, description: d}
models:
- {id: a, engine: llamacpp, path: a.gguf}
- {id: b, engine: vllm, hf_repo: o/b}
sweep: {context_lengths: [64, 128], batch_sizes: [1], output_tokens: [8], repetitions: 2, warmup_runs: 2}
output: {base_dir: ./out//x/}
`

func plan(t *testing.T, text string) *Plan {
	t.Helper()
	c, _, err := Parse("x.yaml", []byte(text), Strict)
	if err != nil {
		t.Fatal(err)
	}
	return NewPlan(c, Strict)
}

func hash(t *testing.T, p *Plan) string {
	t.Helper()
	h, err := p.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPlanOrderAndIDs(t *testing.T) {
	p := plan(t, sweepFile)
	var got []string
	for i := range p.Runs {
		got = append(got, p.Runs[i].OutputDir(Stamp(fixedTime)))
	}
	var want []string
	for _, m := range []string{"a", "b"} {
		for _, ctx := range []string{"64", "128"} {
			for _, r := range []string{"warmup0", "warmup1", "rep0", "rep1"} {
				want = append(want, "out/x/"+m+"/"+m+"_ctx"+ctx+"_batch1_out8_"+r+"_20260304T040607Z")
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if p.Warmups() != 8 {
		t.Errorf("%d warm-ups", p.Warmups())
	}
	if err := p.Runs[0].Spec.Runnable(); err != nil {
		t.Error(err)
	}
	if err := p.Runs[15].Spec.Runnable(); run.ExitCode(err) != 4 || !strings.Contains(err.Error(), `"b"`) {
		t.Error(err)
	}
}

func TestPlanHash(t *testing.T) {
	h := hash(t, plan(t, sweepFile))
	for what, text := range map[string]string{
		"nothing":           sweepFile,
		"a description":     strings.Replace(sweepFile, "description: d", "description: other", 1),
		"the directory":     strings.Replace(sweepFile, "./out//x/", "elsewhere", 1),
		"a spelling":        strings.Replace(sweepFile, "repetitions: 2", `repetitions: "2"`, 1),
		"a default":         sweepFile + "tierscope: {kv_block_tokens: 16}\n",
		"an unused key":     sweepFile + "telemetry: {capture: false}\n",
		"order of the keys": strings.Replace(sweepFile, "id: a, engine: llamacpp", "engine: llamacpp, id: a", 1),
	} {
		if got := hash(t, plan(t, text)); got != h {
			t.Errorf("%s changes the hash", what)
		}
	}
	for what, text := range map[string]string{
		"the seed":     sweepFile + "tierscope: {seed: 1}\n",
		"a prompt":     sweepFile + "tierscope: {prompts: [{text: hello}]}\n",
		"the model":    strings.Replace(sweepFile, "a.gguf", "c.gguf", 1),
		"repetitions":  strings.Replace(sweepFile, "repetitions: 2", "repetitions: 3", 1),
		"the order":    strings.Replace(sweepFile, "[64, 128]", "[128, 64]", 1),
		"the policy":   sweepFile + "labeller: {unknown_policy: fail_run}\n",
		"the analysis": sweepFile + "analyser: {histogram_bins: 7}\n",
	} {
		if got := hash(t, plan(t, text)); got == h {
			t.Errorf("%s does not change the hash", what)
		}
	}
}

// A reader of the JSON can compute the hash.
func TestPlanDocument(t *testing.T) {
	p := plan(t, sweepFile)
	one, err := p.Document("S1", nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.Document("S2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if one.Hash != two.Hash || one.Runs[0].RunID == two.Runs[0].RunID {
		t.Error("the stamp belongs to run ids, not to the hash")
	}
	b, err := json.MarshalIndent(one, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Hash string
		Plan json.RawMessage
		Runs []map[string]any
	}
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, back.Plan); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(compact.Bytes())
	if hex.EncodeToString(sum[:]) != back.Hash || back.Hash != hash(t, p) {
		t.Error("hash is not that of the plan member")
	}
	want := map[string]any{"run_id": "a_ctx64_batch1_out8_warmup1_S1", "output_dir": "out/x/a/a_ctx64_batch1_out8_warmup1_S1",
		"id": "a_ctx64_batch1_out8_warmup1", "model": "a", "context_length": 64.0, "batch_size": 1.0, "output_tokens": 8.0, "rep_index": 1.0, "is_warmup": true}
	if d := cmp.Diff(want, back.Runs[1]); d != "" {
		t.Error(d)
	}
}

func TestPlanPrintsHash(t *testing.T) {
	p := plan(t, sweepFile)
	var strict, compat bytes.Buffer
	if err := p.Print(&strict); err != nil {
		t.Fatal(err)
	}
	p.Mode = Compat
	if err := p.Print(&compat); err != nil {
		t.Fatal(err)
	}
	p.Mode = Strict
	if want := compat.String() + "\nPlan hash  : sha256:" + hash(t, p) + "\n"; strict.String() != want {
		t.Errorf("got %q, want %q", strict.String(), want)
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{"": ".", ".": ".", "./": ".", "a//b/./c/": "a/b/c", "/": "/", "/a/": "/a", "//a": "//a",
		"///a": "/a", "../a": "../a", "a/..": "a/.."} {
		if got := cleanPath(in); got != want {
			t.Errorf("cleanPath(%q) = %q, not %q", in, got, want)
		}
	}
}
