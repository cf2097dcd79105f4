package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tierscope/tierscope/run"
)

// Prompt is a prompt to generate from.
type Prompt struct {
	Text     string
	Category string // "" unless the file says
	Tokens   int    // tokens to generate; 0: as the sweep says
	Keep     bool   // goes on with the conversation before
}

// maxPrompts is the largest prompt file in bytes.
const maxPrompts = 256 << 20

// LoadPrompts returns the prompts of the config in order: those in the file itself, or
// those of prompts.source in the categories asked for. There is none if the
// config names none. A prompt file that is not what its name says, or
// that holds no prompt of the categories, is an error of class [run.Misuse].
func (c *Config) LoadPrompts() ([]Prompt, error) {
	var list []Prompt
	for _, p := range c.Settings().Prompts {
		list = append(list, Prompt{Text: p.Text, Tokens: p.Tokens, Keep: p.Keep})
	}
	if c.Prompts == nil {
		return list, nil
	}
	data, err := readPrompts(c.Prompts.Source)
	if err != nil {
		return nil, err
	}
	all, err := ParsePrompts(c.Prompts.Source, data)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if len(c.Prompts.Categories) == 0 || slices.Contains(c.Prompts.Categories, p.Category) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, run.Errorf(run.Misuse, "%s: none of %d prompts is in categories %s",
			c.Prompts.Source, len(all), strings.Join(c.Prompts.Categories, ", "))
	}
	return list, nil
}

func readPrompts(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, run.Errorf(run.Misuse, "prompt file cannot be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPrompts+1))
	if err != nil {
		return nil, run.Errorf(run.IO, "prompt file cannot be read: %w", err)
	}
	if len(data) > maxPrompts {
		return nil, run.Errorf(run.Misuse, "%s: larger than %d MiB; split it", name, maxPrompts>>20)
	}
	return data, nil
}

// ParsePrompts reads the prompts in data, the content of a file called name, in
// the form that the name's ending says. No prompt at all is an error.
func ParsePrompts(name string, data []byte) ([]Prompt, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := invalidUTF8(data); at >= 0 {
		return nil, run.Errorf(run.Misuse, "%s: byte %d is not UTF-8; save the file as UTF-8", name, at)
	}
	var list []Prompt
	var err error
	switch {
	case strings.HasSuffix(name, ".json"):
		var items []jsonPrompt
		if err = json.Unmarshal(data, &items); err != nil {
			return nil, run.Errorf(run.Misuse, "%s: not a JSON list of prompts: %w", name, err)
		}
		for i, p := range items {
			if strings.TrimSpace(p.Text) == "" {
				return nil, run.Errorf(run.Misuse, "%s: item %d has no prompt; give \"prompt\" or \"text\"", name, i+1)
			}
			list = append(list, Prompt{Text: p.Text, Category: p.Category})
		}
	case strings.HasSuffix(name, ".jsonl"):
		list, err = promptLines(name, data, func(line []byte) (p jsonPrompt, err error) { err = json.Unmarshal(line, &p); return p, err })
	default:
		list, err = promptLines(name, data, func(line []byte) (jsonPrompt, error) { return jsonPrompt{Text: string(line)}, nil })
	}
	if err == nil && len(list) == 0 {
		err = run.Errorf(run.Misuse, "%s: no prompt in the file", name)
	}
	return list, err
}

func promptLines(name string, data []byte, parse func([]byte) (jsonPrompt, error)) ([]Prompt, error) {
	var list []Prompt
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, maxPrompts+1)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		p, err := parse(line)
		if err != nil {
			return nil, run.Errorf(run.Misuse, "%s:%d: not a prompt in JSON: %w", name, n, err)
		}
		if strings.TrimSpace(p.Text) == "" {
			return nil, run.Errorf(run.Misuse, "%s:%d: no prompt; give \"prompt\" or \"text\"", name, n)
		}
		list = append(list, Prompt{Text: p.Text, Category: p.Category})
	}
	if err := s.Err(); err != nil {
		return nil, run.Errorf(run.IO, "%s: %w", name, err)
	}
	return list, nil
}

// jsonPrompt is a string or an object.
type jsonPrompt struct {
	Text, Category string
}

func (p *jsonPrompt) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.Text)
	}
	var o struct {
		Prompt   string `json:"prompt"`
		Text     string `json:"text"`
		Category string `json:"category"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if o.Prompt != "" && o.Text != "" && o.Prompt != o.Text {
		return fmt.Errorf("prompt and text differ")
	}
	p.Text, p.Category = o.Prompt, o.Category
	if p.Text == "" {
		p.Text = o.Text
	}
	if !utf8.ValidString(p.Text) {
		return fmt.Errorf("text is not UTF-8")
	}
	return nil
}
