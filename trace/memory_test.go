package trace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/observe"
)

// widest is the worst batch: no column repeats, every number is random.
func widest(n int) *observe.Batch {
	rnd := rand.New(rand.NewPCG(1, 2))
	d := observe.NewDict()
	for i := range 5000 {
		d.Code(fmt.Sprintf("a symbol of middling length, number %d", i))
	}
	b := &observe.Batch{Len: n}
	for _, l := range layout {
		switch w := l.writer().(type) {
		case *batchText:
			*w.at(b) = observe.Strings{Column: randomColumn(rnd, n, uint32(d.Len()-1)), Dict: d}
		case *batchNum[uint8]:
			*w.at(b) = randomColumn(rnd, n, uint8(255))
		case *batchNum[uint16]:
			*w.at(b) = randomColumn(rnd, n, uint16(65535))
		case *batchNum[uint32]:
			*w.at(b) = randomColumn(rnd, n, uint32(1<<32-1))
		case *batchNum[uint64]:
			*w.at(b) = randomColumn(rnd, n, uint64(1<<64-1))
		case *batchNum[int32]:
			*w.at(b) = randomColumn(rnd, n, int32(1<<31-1))
		}
	}
	return b
}

func randomColumn[T observe.Number](rnd *rand.Rand, n int, mask T) observe.Column[T] {
	v := make([]T, n)
	for i := range v {
		v[i] = T(rnd.Uint64()) & mask
	}
	return observe.SliceOf(v)
}

// TestWriterMemory measures the peak of a process of its own that writes the
// given trace.
func TestWriterMemory(t *testing.T) {
	if kind := os.Getenv("TRACE_WRITER_MEMORY"); kind != "" {
		b := points(1<<14, 1<<30, 1)
		if kind == "widest" {
			b = widest(1 << 13)
		}
		w, err := Create(filepath.Join(t.TempDir(), "trace.parquet"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for w.Rows() < 1_500_000 {
			if err := w.Accesses(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		line, _, _ := strings.Cut(after, "\n")
		fmt.Printf("peak %s\n", line)
		return
	}
	for _, c := range []struct {
		kind  string
		limit int // MiB
	}{{"points", 64}, {"widest", 96}} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestWriterMemory$")
		cmd.Env = append(os.Environ(), "TRACE_WRITER_MEMORY="+c.kind)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var kib int
		_, after, _ := strings.Cut(string(out), "peak ")
		if _, err := fmt.Sscan(after, &kib); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		t.Logf("%s: peak %d MiB", c.kind, kib>>10)
		if kib>>10 > c.limit {
			t.Errorf("%s: peak of %d MiB, at most %d", c.kind, kib>>10, c.limit)
		}
	}
}
