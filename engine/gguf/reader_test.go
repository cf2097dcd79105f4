package gguf_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/run"
)

// TestOpenCorrupt holds each kind of damage against its one line.
func TestOpenCorrupt(t *testing.T) {
	_, good := synth(t, gguf.Spec{Layers: 1, Width: 64, Heads: 2, FFN: 64, Vocab: 40})
	patch := func(at int, b ...byte) []byte {
		c := slices.Clone(good)
		copy(c[at:], b)
		return c
	}
	ok := func() *raw { return new(raw).arch("llama") }
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":              {nil, "the file is empty"},
		"shorter than magic": {[]byte("GG"), "not a GGUF: shorter than its magic"},
		"wrong magic":        {patch(0, []byte("PK\x03\x04")...), `not a GGUF: it starts with "PK\x03\x04", not "GGUF"`},
		"version 1":          {patch(4, 1), "GGUF version 1 is not supported, only 2 and 3"},
		"version 4":          {patch(4, 4), "GGUF version 4 is not supported, only 2 and 3"},
		"big-endian":         {patch(4, 0, 0, 0, 3), "a big-endian GGUF; convert it to little-endian"},
		"big-endian magic":   {patch(0, []byte("FUGG")...), "a big-endian GGUF; convert it to little-endian"},
		"magic alone":        {good[:4], "truncated: the file ends inside its header; fetch it again"},
		"in the header":      {good[:700], "truncated: the file ends inside its header; fetch it again"},
		"in the counts":      {good[:300], "truncated: 12 tensors do not fit into a file of 300 bytes; fetch it again"},
		"in the data":        {good[:len(good)-4000], "after the end of the file"},
		"no data":            {good[:len(good)/32*32-len(good)/2], "truncated: tensor"},
		"many tensors":       {patch(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "9223372036854775807 tensors are more than any model has"},
		"many pairs":         {patch(16, 0, 0, 0, 0, 1), "4294967296 metadata pairs are more than any model has"},
		"no architecture":    {new(raw).file(0), "it has no general.architecture; it is no model"},
		"long key":           {patch(24, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "metadata pair 0: truncated"},
		"key twice":          {ok().arch("llama").file(0), `metadata pair 1: key "general.architecture" is there twice`},
		"empty key":          {ok().key("", 4).u32(1).file(0), "metadata pair 1: a key of 0 bytes"},
		"value type":         {ok().key("x", 13).u64(0).file(0), `metadata pair 1: key "x": value type 13 is unknown`},
		"long string":        {ok().key("x", 8).u64(1 << 62).file(0), `metadata pair 1: key "x": truncated`},
		"long array":         {ok().key("x", 9).u32(4).u64(1 << 62).file(0), `metadata pair 1: key "x": truncated`},
		"long string array":  {ok().key("x", 9).u32(8).u64(1 << 60).file(64), `metadata pair 1: key "x": truncated`},
		"nested array":       {ok().key("x", 9).u32(9).u64(1).u32(4).u64(0).file(0), `metadata pair 1: key "x": array of type 9 is not supported`},
		"alignment 0":        {ok().key("general.alignment", 4).u32(0).file(0), "general.alignment 0 is not a power of two"},
		"alignment 33":       {ok().key("general.alignment", 4).u32(33).file(0), "general.alignment 33 is not a power of two"},
		"layers":             {ok().key("llama.block_count", 4).u32(4e9).file(0), `"llama.block_count" is 4000000000, more than the 512 layers of llama.cpp`},
		"no dimensions":      {ok().tensor("a", 0, 0).file(99), `tensor 0: "a" has 0 dimensions, not 1 to 4`},
		"five dimensions":    {ok().tensor("a", 0, 0, 1, 1, 1, 1, 1).file(99), `tensor 0: "a" has 5 dimensions, not 1 to 4`},
		"dimension 0":        {ok().tensor("a", 0, 0, 0).file(99), `tensor 0: "a" has a dimension of 0`},
		"tensor name":        {ok().tensor(strings.Repeat("a", 64), 0, 0, 1).file(99), "tensor 0: a name of 64 bytes"},
		"tensor twice":       {ok().tensor("a", 0, 0, 1).tensor("a", 0, 32, 1).file(99), `tensor "a" is there twice`},
		"tensor type":        {ok().tensor("a", 99, 0, 1).file(99), `tensor 0: "a" has ggml type 99, unknown to this version`},
		"removed type":       {ok().tensor("a", 4, 0, 32).file(99), `tensor 0: "a" has ggml type 4, unknown to this version`},
		"half a block":       {ok().tensor("a", 12, 0, 128).file(99), `tensor 0: "a" has rows of 128 elements, not whole blocks of 256 (q4_K)`},
		"size overflow":      {ok().tensor("a", 0, 0, 1<<40, 1<<40).file(99), `tensor 0: "a" has an impossible size [1099511627776 1099511627776]`},
		"size wraps to 0":    {ok().tensor("a", 0, 0, 1<<62, 4).file(99), `tensor 0: "a" has an impossible size`},
		"elements wrap":      {ok().tensor("a", 2, 0, 1<<62, 2, 2).file(99), `tensor 0: "a" has an impossible size`},
		"offset":             {ok().tensor("a", 0, 8, 1).file(99), `tensor 0: "a" has offset 8, not a multiple of 32 in the file`},
		"offset wraps":       {ok().tensor("a", 0, 1<<64-32, 1).file(99), `tensor 0: "a" has offset 18446744073709551584, not a multiple`},
		"overlap":            {ok().tensor("a", 0, 0, 9).tensor("b", 0, 32, 1).file(99), `tensors "a" and "b" overlap`},
		"beyond the end":     {ok().tensor("a", 0, 64, 16).file(99), `truncated: tensor "a" ends 29 bytes after the end of the file`},
	} {
		t.Run(name, func(t *testing.T) {
			path := save(t, c.b)
			_, err := gguf.Open(path)
			if err == nil || run.ClassOf(err) != run.Corrupt {
				t.Fatalf("%v (class %d), want Corrupt", err, run.ClassOf(err))
			}
			if s := err.Error(); !strings.HasPrefix(s, "model "+path+": ") || !strings.Contains(s, c.want) || strings.Contains(s, "\n") {
				t.Errorf("%q\nwant in it %q", s, c.want)
			}
		})
	}
}

func TestOpenNoFile(t *testing.T) {
	dir := t.TempDir()
	for path, c := range map[string]struct {
		class run.Class
		want  string
	}{
		dir:                           {run.Misuse, "is a directory; name the .gguf file in it"},
		filepath.Join(dir, "no.gguf"): {run.IO, "no such file or directory"},
		"/dev/null":                   {run.Misuse, "is not a regular file"},
	} {
		if _, err := gguf.Open(path); run.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (class %d)", path, err, run.ClassOf(err))
		}
	}
}

// TestOpenEveryCut cuts a model at every byte of its header: always one clear
// error, never a panic.
func TestOpenEveryCut(t *testing.T) {
	path, good := synth(t, gguf.Spec{Layers: 1, Width: 64, Heads: 2, FFN: 64, Vocab: 40})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int(f.DataOffset) {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, good[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := gguf.Open(path); run.ClassOf(err) != run.Corrupt {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// TestOpenHeader reads all kinds of values, arrays a layer and an alignment of
// its own.
func TestOpenHeader(t *testing.T) {
	r := new(raw).arch("gemma3").
		key("general.alignment", 4).u32(64).
		key("general.name", 8).text("Ünï").
		key("gemma3.block_count", 4).u32(3).
		key("gemma3.embedding_length", 10).u64(64).
		key("gemma3.attention.head_count", 4).u32(8).
		key("gemma3.attention.head_count_kv", 9).u32(5).u64(3).u32(1).u32(2).u32(4).
		key("gemma3.attention.key_length", 4).u32(16).
		key("gemma3.feed_forward_length", 9).u32(4).u64(3).u32(10).u32(20).u32(30).
		key("gemma3.attention.sliding_window", 4).u32(7).
		key("gemma3.attention.sliding_window_pattern", 9).u32(7).u64(3)
	r.b = append(r.b, 1, 0, 1)
	r.key("gemma3.rope.freq_base", 6).u32(0x461c4000). // 10000
								key("tokenizer.ggml.tokens", 9).u32(8).u64(2).text("a").text("bc").
								key("big", 11).u64(1<<64-1).
								key("huge", 10).u64(1<<64-1).
								key("f64", 12).u64(0x3ff8000000000000).
								key("nan", 6).u32(0x7fc00000)
	r.tensor("blk.0.attn_q.weight", 2, 0, 64, 4)
	b := r.file(0)
	for len(b)%64 != 0 {
		b = append(b, 0)
	}
	data := int64(len(b))
	f, err := gguf.Open(save(t, append(b, make([]byte, 144)...)))
	if err != nil {
		t.Fatal(err)
	}
	want := gguf.Shape{
		Architecture: "gemma3", Name: "Ünï", Layers: 3, Width: 64, FFN: []int{10, 20, 30}, Heads: []int{8, 8, 8}, KVHeads: []int{1, 2, 4},
		KeyLength: 16, ValueLength: 8, Vocab: 2, Tied: true, SlidingWindow: 7, SlidingLayers: []bool{true, false, true}, RopeBase: 10000,
	}
	if d := cmp.Diff(want, f.Shape); d != "" {
		t.Error(d)
	}
	tensor := []gguf.Tensor{{Name: "blk.0.attn_q.weight", Type: gguf.Q4_0, Shape: []int64{64, 4}, Offset: data, Bytes: 144}}
	if d := cmp.Diff(tensor, f.Tensors); d != "" || f.Alignment != 64 || f.DataOffset != data {
		t.Errorf("alignment %d, data at %d: %s", f.Alignment, f.DataOffset, d)
	}
	// (1 + 2 + 4) heads of 16 and of 8 elements of two bytes.
	if n := f.Shape.KVBytes(gguf.F16); n != 7*24*2 {
		t.Errorf("%d bytes of key and value", n)
	}
	if f.Meta.Int("big", 0) != -1 || f.Meta["huge"] != uint64(1<<64-1) || f.Meta.Float("f64", 0) != 1.5 || f.Meta.Float("nan", 3) != 3 {
		t.Errorf("metadata %v", f.Meta)
	}
}

// TestOpenLarge reads headers that are large in one way: memory stays small.
func TestOpenLarge(t *testing.T) {
	tokens := new(raw).arch("llama").key("tokenizer.ggml.tokens", 9).u32(8).u64(300000)
	for range 300000 {
		tokens.text("token")
	}
	numbers := new(raw).arch("llama").key("tokenizer.ggml.scores", 9).u32(6).u64(1 << 20)
	numbers.b = append(numbers.b, make([]byte, 4<<20)...)
	template := new(raw).arch("llama").key("tokenizer.chat_template", 8).text(strings.Repeat("x", 1<<20))
	for name, b := range map[string][]byte{"tokens": tokens.file(0), "numbers": numbers.file(0), "template": template.file(0)} {
		path := save(t, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := gguf.Open(path); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 512<<10 {
			t.Errorf("%s: %d bytes allocated for a header of %d", name, allocated, len(b))
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, s := range []gguf.Spec{{Layers: 1, Width: 32, FFN: 32, Vocab: 8}, {Layers: 1, Width: 32, FFN: 32, Vocab: 8, Experts: 3},
		{Layers: 1, Width: 32, FFN: 32, Vocab: 8, SlidingWindow: 9, Type: "q4_0"}} {
		_, b := synth(f, s)
		f.Add(b)
	}
	f.Add(new(raw).arch("a").key("a.rope.freq_base", 6).u32(0x7f800000).key("general.name", 8).text("\x1b[31m").
		key("a.block_count", 4).u32(512).key("a.attention.head_count", 10).u64(1<<62).key("a.attention.key_length", 10).u64(1 << 62).file(0))
	f.Add(new(raw).arch("llama").key("x", 9).u32(4).u64(2).u32(1).u32(2).tensor("a", 12, 0, 256, 2).file(288))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Parse(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || err.Error() == "" {
				t.Fatalf("%q", err)
			}
			return
		}
		for _, x := range file.Tensors {
			if x.Offset < file.DataOffset || x.Bytes <= 0 || x.Offset+x.Bytes > int64(len(b)) {
				t.Fatalf("tensor %+v outside of %d bytes", x, len(b))
			}
		}
		s := file.Summary(gguf.F16)
		if s.Decode.WeightBytes < 0 || s.Decode.KVBytes < 0 {
			t.Fatalf("%+v", s.Decode)
		}
		var out strings.Builder
		if err := s.WriteText(&out, true); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\r") {
			t.Fatal("control characters of the file reach the terminal")
		}
	})
}
