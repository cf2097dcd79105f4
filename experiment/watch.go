package experiment

import (
	"context"
	"os"
	"time"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/machine"
	"github.com/tierscope/tierscope/system/process"
	"github.com/tierscope/tierscope/trace"
)

// engine runs the job, writes its graph log through w, and fills in the metadata
// with what the machine and the processes said meanwhile.
func (s *single) engine(ctx context.Context, dir *run.Dir, meta *run.Metadata, w *watch, job *llamacpp.Job) error {
	for _, name := range []string{"graph", "raw"} {
		if _, err := dir.Mkdir(name); err != nil {
			return err
		}
	}
	const logName = "raw/engine.log"
	words, err := os.OpenFile(dir.Path(logName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return run.IOError(err)
	}
	defer words.Close()
	w.host, w.prompts = machine.New(""), len(job.Prompts)
	if meta.Baseline, err = w.host.Baseline(ctx, machine.BaselineTime/4, machine.BaselinePeriod/2); err != nil {
		if ctx.Err() != nil {
			return run.Errorf(run.Interrupted, "interrupted before the engine was started")
		}
		return err
	}
	if w.GraphWriter, err = trace.CreateGraphLog(dir.Path(trace.GraphLogName)); err != nil {
		return run.IOError(err)
	}
	throttles := w.host.Throttles()
	w.self, _ = process.Watch(os.Getpid(), samplePeriod, maxSamples)
	_, err = llamacpp.Run(ctx, job, w, words)
	if closeErr := w.Close(); err == nil || run.ClassOf(err) != run.IO && closeErr != nil {
		err = closeErr
	}
	w.fill(meta, w.host.Throttles().Since(throttles))
	if c := run.ClassOf(err); c == run.Engine || c == run.Corrupt {
		if last := llamacpp.Complaint(dir.Path(logName)); last != "" {
			err = run.Errorf(c, "%w: %s", err, last)
		}
	}
	return err
}

const (
	samplePeriod = 200 * time.Millisecond
	maxSamples   = 4096
)

// watch passes records on to the log, tells progress and samples the two
// processes.
type watch struct {
	*trace.GraphWriter
	say     func(string, ...any)
	host    machine.Machine
	prompts int
	records int
	evals   int
	done    int
	tokens  int
	told    time.Time
	self    *process.Watcher
	child   *process.Watcher
	hottest float64
}

// Append implements llamacpp.Records.
func (w *watch) Append(kind uint8, payload []byte) error {
	if kind != trace.KindModel { // told before the engine is started
		w.records++
	}
	switch kind {
	case trace.KindEval:
		w.evals++
	case trace.KindEngine:
		var e trace.Engine
		if unmarshalInto(payload, &e) == nil {
			w.child, _ = process.Watch(int(e.PID), samplePeriod, maxSamples)
			w.say("  model loaded: %s, %d layers, context %d, %d thread(s), graphs seen through the %s", e.Model, e.Layers, e.Context, e.Threads, e.Via)
		}
	case trace.KindStep:
		w.tokens++
		w.progress(false)
	case trace.KindOutput:
		w.done++
		w.progress(true)
	case trace.KindTrial:
		if w.done >= 0 {
			w.say("  measuring what observing costs")
			w.done = -1
		}
	}
	return w.GraphWriter.Append(kind, payload)
}

// nothing reports whether a run that ended with err has left nothing worth
// keeping: no graph was seen, or none got to the disk, and the error says all
// there is to say.
func (w *watch) nothing(err error, log string) bool {
	switch run.ClassOf(err) {
	case run.Misuse:
		return w.evals == 0
	case run.IO:
		st, e := os.Stat(log)
		return w.evals == 0 || e != nil || st.Size() <= trace.EmptyGraphLog
	case run.Interrupted, run.Invalid:
		return w.records == 0
	}
	return false
}

func (w *watch) progress(always bool) {
	if !always && time.Since(w.told) < time.Second {
		return
	}
	w.told = time.Now()
	if t, ok := w.host.TemperatureC(); ok {
		w.hottest = max(w.hottest, t)
	}
	w.say("  prompt %d of %d done, %d decode calls", max(w.done, 0), w.prompts, w.tokens)
}

// fill writes the original's observer effect and noise class.
func (w *watch) fill(m *run.Metadata, throttles int64) {
	var observer, target []run.EffectSample
	if w.self != nil {
		observer = effectSamples(w.self.Stop())
	}
	if w.child != nil {
		target = effectSamples(w.child.Stop())
	}
	e := run.NewObserverEffect(observer, target, throttles, m.Baseline.CPUPercent)
	noise := e.Noise(w.hottest)
	m.Validity.RunValidity, m.Validity.FailureReasons = run.Classify(noise, false)
	m.Thermal.RunValidity = m.Validity.RunValidity
	m.Thermal.Throttles = run.Known(throttles)
	if w.hottest > 0 {
		m.Thermal.PeakTempC = run.Known(w.hottest)
	}
	if m.Extra == nil {
		m.Extra = map[string]any{}
	}
	m.Extra["observer_effect_process"] = e
}

func effectSamples(w process.Watched) []run.EffectSample {
	var out []run.EffectSample
	for i := 1; i < len(w.Samples); i++ {
		s := w.Samples[i]
		out = append(out, run.EffectSample{CPUPercent: process.CPUPercent(w.Samples[i-1], s), RSSMiB: float64(s.RSS) / (1 << 20), WriteBytes: float64(s.WriteBytes)})
	}
	return out
}
