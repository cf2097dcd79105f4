package experiment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/run"
)

func TestParsePrompts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Prompt
		err        string
	}{
		{"p.txt", "\ufeffone\r\n\n  two \n", []Prompt{{Text: "one"}, {Text: "two"}}, ""},
		{"p.txt", `{"text": "no JSON here"}`, []Prompt{{Text: `{"text": "no JSON here"}`}}, ""},
		{"p.txt", " \n", nil, "p.txt: no prompt in the file"},
		{"p.txt", "a\xff", nil, "p.txt: byte 1 is not UTF-8"},
		{"p.json", `["one", {"prompt": "two", "category": "c"}, {"text": "three", "id": 3}]`,
			[]Prompt{{Text: "one"}, {Text: "two", Category: "c"}, {Text: "three"}}, ""},
		{"p.json", `[]`, nil, "p.json: no prompt in the file"},
		{"p.json", `{"prompt": "x"}`, nil, "p.json: not a JSON list of prompts"},
		{"p.json", `["x", {"category": "c"}]`, nil, `p.json: item 2 has no prompt; give "prompt" or "text"`},
		{"p.json", `[{"prompt": "x", "text": "y"}]`, nil, "prompt and text differ"},
		{"p.json", `["x"`, nil, "p.json: not a JSON list"},
		{"p.jsonl", "\"one\"\n\n{\"prompt\": \"two\\nlines\", \"category\": \"c\"}\n", []Prompt{{Text: "one"}, {Text: "two\nlines", Category: "c"}}, ""},
		{"p.jsonl", "\"one\"\n{\n", nil, "p.jsonl:2: not a prompt in JSON"},
		{"p.jsonl", "\"one\"\n{}\n", nil, "p.jsonl:2: no prompt"},
		{"p.jsonl", "5\n", nil, "p.jsonl:1: not a prompt in JSON"},
	} {
		got, err := ParsePrompts(c.name, []byte(c.text))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || run.ExitCode(err) != 2 {
				t.Errorf("%s %q: error %v, not %s", c.name, c.text, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s %q: %v %s", c.name, c.text, err, d)
		}
	}
}

func FuzzParsePrompts(f *testing.F) {
	f.Add("p.txt", []byte("one\ntwo\n"))
	f.Add("p.json", []byte(`["one", {"prompt": "two", "category": "c"}]`))
	f.Add("p.jsonl", []byte("\"one\"\n{\"text\": \"two\"}\n"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		list, err := ParsePrompts(name, data)
		if err == nil && len(list) == 0 {
			t.Fatal("no prompt and no error")
		}
		for _, p := range list {
			if strings.TrimSpace(p.Text) == "" {
				t.Fatal("an empty prompt")
			}
		}
	})
}
