package ring

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
)

func open(t testing.TB, capacity int) (*os.File, *Producer, *Consumer) {
	t.Helper()
	f, err := Create(capacity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c, err := NewConsumer(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Attach(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, p, c
}

func TestRecordsArriveWholeAndInOrder(t *testing.T) {
	_, p, c := open(t, 1<<14)
	const n = 20000
	go func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			b := make([]byte, 4+rng.IntN(3000))
			binary.LittleEndian.PutUint32(b, uint32(i))
			for j := 4; j < len(b); j++ {
				b[j] = byte(i)
			}
			if err := p.Write(FirstKind, b, time.Minute); err != nil {
				t.Error(err)
				break
			}
		}
		p.Close()
	}()
	for i := 0; i < n; {
		rec, ok, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			time.Sleep(10 * time.Microsecond)
			continue
		}
		if got := binary.LittleEndian.Uint32(rec.Payload); got != uint32(i) || rec.Lost != 0 {
			t.Fatalf("record %d, lost %d; want %d, 0", got, rec.Lost, i)
		}
		for _, b := range rec.Payload[4:] {
			if b != byte(i) {
				t.Fatalf("record %d is torn", i)
			}
		}
		i++
	}
}

func TestLossIsCountedAndTold(t *testing.T) {
	_, p, c := open(t, 4096)
	b := make([]byte, 1000)
	wrote, lost := 0, uint64(0)
	for range 10 {
		if p.Write(FirstKind, b, 0) == nil {
			wrote++
		} else {
			lost++
		}
	}
	if lost == 0 || wrote == 0 {
		t.Fatalf("wrote %d, lost %d: want both", wrote, lost)
	}
	for range wrote {
		if rec, ok, err := c.Read(); !ok || err != nil || rec.Lost != 0 {
			t.Fatal(rec, ok, err)
		}
	}
	if _, ok, _ := c.Read(); ok {
		t.Fatal("a record that was given up arrived")
	}
	if err := p.Write(FirstKind, b, 0); err != nil {
		t.Fatal(err)
	}
	rec, ok, err := c.Read()
	if !ok || err != nil || rec.Lost != lost || c.Lost() != lost {
		t.Fatalf("lost %d told, %d counted, want %d (%v %v)", rec.Lost, c.Lost(), lost, ok, err)
	}
}

func TestRecordTooLargeIsRefused(t *testing.T) {
	_, p, _ := open(t, 4096)
	if err := p.Write(FirstKind, make([]byte, 3000), time.Millisecond); err == nil {
		t.Fatal("a record of more than half the ring was taken")
	}
}

func TestHostileHeaderIsAnError(t *testing.T) {
	_, p, c := open(t, 4096)
	if err := p.Write(FirstKind, []byte("hello"), 0); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(c.data, 1<<31)
	if _, _, err := c.Read(); err == nil {
		t.Fatal("a length beyond the ring was believed")
	}
}

func TestSecondProducerIsRefused(t *testing.T) {
	f, _, _ := open(t, 4096)
	if _, err := Attach(f); err == nil {
		t.Fatal("two producers")
	}
}

// TestMain lets the test binary be the producer that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("RING_PRODUCER") == "1" {
		p, err := Attach(os.NewFile(3, "ring"))
		if err != nil {
			os.Exit(3)
		}
		for i := uint64(0); ; i++ {
			b := make([]byte, 8+i%500)
			binary.LittleEndian.PutUint64(b, i)
			if p.Write(FirstKind, b, time.Minute) != nil {
				os.Exit(4)
			}
		}
	}
	os.Exit(m.Run())
}

func TestKilledProducerLeavesWholeRecordsAndIsNoticed(t *testing.T) {
	f, err := Create(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := NewConsumer(f)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RING_PRODUCER=1")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var n uint64
	for n < 100000 {
		rec, ok, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		if got := binary.LittleEndian.Uint64(rec.Payload); got != n {
			t.Fatalf("record %d, want %d", got, n)
		}
		n++
		if n == 50000 {
			cmd.Process.Kill()
			cmd.Wait()
			break
		}
	}
	for {
		rec, ok, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if got := binary.LittleEndian.Uint64(rec.Payload); got != n {
			t.Fatalf("record %d, want %d", got, n)
		}
		n++
	}
	if !c.Dead() || c.Closed() {
		t.Fatalf("dead %v, closed %v; want true, false", c.Dead(), c.Closed())
	}
}

func BenchmarkWriteRead(b *testing.B) {
	_, p, c := open(b, 1<<20)
	payload := make([]byte, 100)
	b.SetBytes(100)
	for b.Loop() {
		if err := p.Write(FirstKind, payload, 0); err != nil {
			b.Fatal(err)
		}
		if _, ok, err := c.Read(); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
