package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_SLEEP") != "" {
		time.Sleep(time.Minute)
		return
	}
	goleak.VerifyTestMain(m)
}

func read(t *testing.T, r *Reader) (s Sample) {
	t.Helper()
	if err := r.Read(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSelf(t *testing.T) {
	r, err := NewReader(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := read(t, r)

	// Use a known amount of each: memory, CPU on another thread, written bytes.
	const size = 64 << 20
	mem := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	burnt := make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		start := time.Now()
		for time.Since(start) < 50*time.Millisecond {
		}
		burnt <- time.Since(start)
	}()
	<-burnt
	if err := os.WriteFile(t.TempDir()+"/f", mem[:1<<20], 0o644); err != nil {
		t.Fatal(err)
	}
	b := read(t, r)
	runtime.KeepAlive(mem)

	if grown := int64(b.RSS) - int64(a.RSS); grown < size*9/10 {
		t.Errorf("RSS grew by %d bytes, %d were touched", grown, size)
	}
	if b.MinorFaults == a.MinorFaults {
		t.Error("no faults")
	}
	if b.CPU <= a.CPU || b.Time <= a.Time {
		t.Errorf("CPU %d to %d, time %d to %d", a.CPU, b.CPU, a.Time, b.Time)
	}
	if !b.IOKnown || b.WriteCalls-a.WriteCalls < 1<<20 {
		t.Errorf("wrote %d bytes (known: %v)", b.WriteCalls-a.WriteCalls, b.IOKnown)
	}
	if b.Threads < 2 || b.Virtual < b.RSS || b.RSS < b.RSSShared {
		t.Errorf("%+v", b)
	}
	if p := CPUPercent(a, b); p <= 0 || p > 100*float64(runtime.NumCPU())+50 {
		t.Errorf("%v %% CPU", p)
	}
	if p := CPUPercent(b, a); p == p {
		t.Errorf("backwards: %v", p)
	}
}

func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_SLEEP=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestEnd(t *testing.T) {
	cmd := sleeper(t)
	r, err := NewReader(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read(t, r)
	cmd.Process.Kill()
	var s Sample
	for end := time.Now().Add(10 * time.Second); ; {
		if err = r.Read(&s); err != nil || time.Now().After(end) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !errors.Is(err, ErrGone) {
		t.Errorf("killed, not yet waited for: %v", err)
	}
	cmd.Wait()
	if err := r.Read(&s); !errors.Is(err, ErrGone) {
		t.Errorf("waited for: %v", err)
	}
	if _, err := NewReader(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("new reader: %v", err)
	}
}

func TestWatch(t *testing.T) {
	cmd := sleeper(t)
	w, err := Watch(cmd.Process.Pid, time.Millisecond, 16)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(120 * time.Millisecond)
	cmd.Process.Kill()
	cmd.Wait()
	time.Sleep(80 * time.Millisecond)
	got := w.Stop()
	if n := len(got.Samples); n < 8 || n > 16 {
		t.Errorf("%d samples", n)
	}
	if got.Period < 2*time.Millisecond {
		t.Errorf("period %v: never thinned", got.Period)
	}
	if !got.Gone || got.Err != nil || got.PeakRSS == 0 {
		t.Errorf("%+v", got)
	}
	for i := 1; i < len(got.Samples); i++ {
		if got.Samples[i].Time <= got.Samples[i-1].Time {
			t.Errorf("samples out of order at %d", i)
		}
	}
	if diff := cmp.Diff(got, w.Stop()); diff != "" {
		t.Errorf("second Stop: %s", diff)
	}
	if _, err := Watch(cmd.Process.Pid, time.Second, 16); !errors.Is(err, ErrGone) {
		t.Errorf("watch a process that ended: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 0 -1 4194304 101 7 5 8 11 13 0 0 20 0 4 0 172872 3133440 415 18446744073709551615"
	want := stat{'S', 101, 5, 11, 13, 4, 3133440}
	for _, name := range []string{"(cat)", "(a b)", "(x) R 1 (y)", "()", "((((\n)"} {
		var s stat
		if err := s.parse([]byte("12 " + name + tail)); err != nil || s != want {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
	for _, bad := range []string{"", "12 (cat", "12 (cat)", "12 (cat) S", "12 (cat) S 1 2 x", "12 (cat) S 1 2 3 0 -1 4194304 99999999999999999999"} {
		var s stat
		if err := s.parse([]byte(bad)); err == nil {
			t.Errorf("%q was taken: %+v", bad, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("12 (a b) S 1 2 3 0 -1 4194304 101 7 5 8 11 13 0 0 20 0 4 0 172872 3133440 415 1"))
	f.Add([]byte("rchar: 1\nwchar: 2\nsyscr: 3\nread_bytes: 4\nwrite_bytes: 5\ncancelled_write_bytes: 6"))
	f.Add([]byte("1 2 3 4 5 6 7"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s stat
		var pages [3]uint64
		var sample Sample
		s.parse(b)
		parseStatm(b, &pages)
		parseIO(b, &sample)
	})
}

func TestReadDoesNotAllocate(t *testing.T) {
	r, err := NewReader(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var s Sample
	if n := testing.AllocsPerRun(50, func() { r.Read(&s) }); n != 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

func BenchmarkRead(b *testing.B) {
	r, err := NewReader(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var s Sample
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Read(&s); err != nil {
			b.Fatal(err)
		}
	}
}
