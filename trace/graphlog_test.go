package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

func TestStepRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint32()
		s := Step{rapid.Bool().Draw(t, "prefill"), u.Draw(t, "request"), u.Draw(t, "token"), u.Draw(t, "context"), u.Draw(t, "tokens"), u.Draw(t, "seq"), rapid.Uint64().Draw(t, "start")}
		b := s.Append(nil)
		if got, err := DecodeStep(b); err != nil || got != s {
			t.Fatalf("%v: %+v became %+v", err, s, got)
		}
		if _, err := DecodeStep(b[:len(b)-1]); err == nil {
			t.Fatal("cut off and no error")
		}
		if _, err := DecodeStep(append(b, 0)); err == nil {
			t.Fatal("a byte too many and no error")
		}
	})
}

func TestMarkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64()
		m := observe.Mark{Kind: rapid.String().Draw(t, "kind"), Name: rapid.String().Draw(t, "name"), Index: u.Draw(t, "index"), Seq: rapid.Int32Range(-1, math.MaxInt32-1).Draw(t, "seq"),
			Start: u.Draw(t, "start"), Value: u.Draw(t, "value")}
		m.End = m.Start + rapid.Uint64Range(0, math.MaxUint64-m.Start).Draw(t, "duration")
		b := AppendMark(nil, m)
		if got, err := DecodeMark(b); err != nil || got != m {
			t.Fatalf("%v: %+v became %+v", err, m, got)
		}
		if _, err := DecodeMark(b[:len(b)-1]); err == nil {
			t.Fatal("cut off and no error")
		}
	})
}

func FuzzDecodeStep(f *testing.F) {
	f.Add((&Step{true, 1, 2, 3, 4, 5, 6}).Append(nil))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeStep(b)
		if err != nil {
			return
		}
		if again, err := DecodeStep(s.Append(nil)); err != nil || again != s {
			t.Fatalf("%v: %+v became %+v", err, s, again)
		}
	})
}

func FuzzDecodeMark(f *testing.F) {
	f.Add(AppendMark(nil, observe.Mark{Kind: observe.MarkPhase, Name: observe.PhaseDecode, Index: 3, Seq: -1, Start: 5, End: 9, Value: 7}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMark(b)
		if err != nil {
			return
		}
		if m.End < m.Start || m.Seq < -1 {
			t.Fatalf("%+v", m)
		}
		if again, err := DecodeMark(AppendMark(nil, m)); err != nil || again != m {
			t.Fatalf("%v: %+v became %+v", err, m, again)
		}
	})
}

// pseudorandom is n bytes that do not compress.
func pseudorandom(n int) []byte {
	var b []byte
	for sum := sha256.Sum256([]byte("seed")); len(b) < n; sum = sha256.Sum256(sum[:]) {
		b = append(b, sum[:]...)
	}
	return b[:n]
}

// logOf writes a log of the given payloads; the kind of each is its number.
func logOf(t testing.TB, payloads ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graph.log")
	w, err := CreateGraphLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range payloads {
		if err := w.Append(uint8(i), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

var payloads = [][]byte{nil, []byte("x"), bytes.Repeat([]byte("template "), 1000), pseudorandom(compressFrom + 1), pseudorandom(30), make([]byte, compressFrom)}

func TestGraphLogRoundTrip(t *testing.T) {
	large := append(bytes.Repeat([]byte{7}, maxRecord-1), 8)
	noise := pseudorandom(maxRecord)
	path := logOf(t, append(payloads[:len(payloads):len(payloads)], large, noise)...)
	r, err := OpenGraphLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, want := range append(payloads[:len(payloads):len(payloads)], large, noise) {
		kind, got, err := r.Next()
		if err != nil || int(kind) != i || !bytes.Equal(got, want) {
			t.Fatalf("record %d: kind %d, %d bytes of %d, %v", i, kind, len(got), len(want), err)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) || r.Torn() != nil {
		t.Errorf("at the end: %v, torn %v", err, r.Torn())
	}
	if st, err := os.Stat(path); err != nil || r.Offset() != st.Size() {
		t.Errorf("%d bytes read of %d", r.Offset(), st.Size())
	}
	if _, err := CreateGraphLog(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a log is written over another: %v", err)
	}
	w, err := CreateGraphLog(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(1, append(noise, 0)); err == nil {
		t.Error("a record that cannot be read is written")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestTornGraphLog cuts a log at every byte, and flips every bit: what is
// whole in front is read, nothing behind, and what is wrong is said.
func TestTornGraphLog(t *testing.T) {
	whole, err := os.ReadFile(logOf(t, payloads...))
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{len(graphMagic)}
	for at := len(graphMagic); at < len(whole); ends = append(ends, at) {
		at += frameHeader + int(binary.LittleEndian.Uint32(whole[at:]))
	}
	path := filepath.Join(t.TempDir(), "torn.log")
	read := func(b []byte) (n int, torn error) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := OpenGraphLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for {
			kind, p, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || n >= len(payloads) || int(kind) != n || !bytes.Equal(p, payloads[n]) {
				t.Fatalf("record %d: kind %d, %d bytes, %v", n, kind, len(p), err)
			}
			n++
		}
		if r.Offset() != int64(ends[n]) {
			t.Fatalf("%d records end at %d, not at %d", n, ends[n], r.Offset())
		}
		return n, r.Torn()
	}
	for cut := len(graphMagic); cut <= len(whole); cut++ {
		n, torn := read(whole[:cut])
		if ends[n] > cut || n+1 < len(ends) && ends[n+1] <= cut || (torn == nil) != (ends[n] == cut) {
			t.Fatalf("cut to %d bytes: %d records, torn %v", cut, n, torn)
		}
		if torn != nil && (run.ClassOf(torn) != run.Corrupt || !strings.Contains(torn.Error(), path)) {
			t.Fatalf("cut to %d bytes: %v", cut, torn)
		}
	}
	for at := len(graphMagic); at < len(whole); at += 1 + at%3 {
		hurt := bytes.Clone(whole)
		hurt[at] ^= 1 << (at % 8)
		n, torn := read(hurt)
		if torn == nil || at < ends[n] || at >= ends[n+1] {
			t.Fatalf("byte %d changed: %d records, which end at %d, torn %v", at, n, ends[n], torn)
		}
	}
}

func TestNoGraphLog(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{"empty": nil, "short": []byte("TSGRAPH"), "other": []byte("TSGRAPH2........"), "parquet": []byte("PAR1PAR1PAR1")} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenGraphLog(path); run.ClassOf(err) != run.Corrupt || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenGraphLog(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// frame puts a payload into a frame whose checksum is right.
func frame(kind uint8, p []byte) []byte {
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[:], uint32(len(p)))
	h[8] = kind
	binary.LittleEndian.PutUint32(h[4:], crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, p))
	return append(h[:], p...)
}

// TestBombs has frames that are right and stand for more bytes than a record may
// have.
func TestBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	path := filepath.Join(t.TempDir(), "bomb.log")
	bomb := enc.EncodeAll(make([]byte, 8*maxRecord), nil)
	for name, b := range map[string][]byte{"bomb": frame(1|compressed, bomb), "no zstd": frame(1|compressed, []byte("nothing of the kind"))} {
		if err := os.WriteFile(path, append([]byte(graphMagic), b...), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := OpenGraphLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, p, err := r.Next(); !errors.Is(err, io.EOF) || run.ClassOf(r.Torn()) != run.Corrupt || cap(r.out) > 4*maxRecord {
			t.Errorf("%s: %d bytes, %v, torn %v, %d bytes allocated", name, len(p), err, r.Torn(), cap(r.out))
		}
		r.Close()
	}
}

func FuzzGraphLog(f *testing.F) {
	whole, err := os.ReadFile(logOf(f, payloads...))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[len(graphMagic):])
	f.Add(frame(1|compressed, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0}))
	f.Add([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
	path := filepath.Join(f.TempDir(), "fuzz.log")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, append([]byte(graphMagic), b...), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := OpenGraphLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for {
			_, p, err := r.Next()
			if len(p) > maxRecord {
				t.Fatalf("a record of %d bytes", len(p))
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, io.EOF) || (r.Torn() == nil) != (r.Offset() == int64(len(graphMagic)+len(b))) {
				t.Fatalf("%v, torn %v, %d bytes read of %d", err, r.Torn(), r.Offset(), len(graphMagic)+len(b))
			}
			return
		}
	})
}
