package gguf_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
)

// raw builds GGUF bytes by hand, so that they can be wrong.
type raw struct {
	b              []byte
	tensors, pairs uint64
}

func (r *raw) u32(v uint32) *raw { r.b = binary.LittleEndian.AppendUint32(r.b, v); return r }
func (r *raw) u64(v uint64) *raw { r.b = binary.LittleEndian.AppendUint64(r.b, v); return r }
func (r *raw) text(s string) *raw {
	r.u64(uint64(len(s)))
	r.b = append(r.b, s...)
	return r
}

// key begins a pair of a value type; its value follows.
func (r *raw) key(name string, kind uint32) *raw { r.pairs++; return r.text(name).u32(kind) }

func (r *raw) arch(name string) *raw { return r.key("general.architecture", 8).text(name) }

func (r *raw) tensor(name string, kind uint32, offset uint64, dims ...uint64) *raw {
	r.tensors++
	r.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(kind).u64(offset)
}

// file returns the bytes with their header, padded and with n bytes of data.
func (r *raw) file(n int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	b = binary.LittleEndian.AppendUint64(b, r.tensors)
	b = binary.LittleEndian.AppendUint64(b, r.pairs)
	b = append(b, r.b...)
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, n)...)
}

func save(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// synth writes a spec and returns its path and its bytes.
func synth(t testing.TB, s gguf.Spec) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := gguf.Synth(path, s); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, b
}

func readAt(t *testing.T, path string, offset, n int64) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	return b
}
