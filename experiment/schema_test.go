package experiment

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// The published schema is the one that the types make.
func TestSchemaIsPublished(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../docs/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/config.schema.json is out of date: tierscope schema > docs/config.schema.json")
	}
}

// Every key of a config is described, and nothing else is allowed.
func TestSchemaDescribesEveryKey(t *testing.T) {
	b, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]struct {
			Ref         string `json:"$ref"`
			Type        string
			Description string
		}
		AdditionalProperties *bool
	}
	var s struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	s.Defs[""] = s.object
	n := 0
	for name, o := range s.Defs {
		if o.AdditionalProperties == nil || *o.AdditionalProperties {
			t.Errorf("%s allows unknown keys", name)
		}
		for key, p := range o.Properties {
			n++
			if p.Description == "" {
				t.Errorf("%s.%s is not described", name, key)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d keys", n)
	}
}

// The examples validate without a warning where their files exist.
func TestExamplesValidate(t *testing.T) {
	examples, err := filepath.Glob("../docs/examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	for _, e := range examples {
		text, err := os.ReadFile(e)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(e), func(t *testing.T) {
			c, _, err := Parse(e, text, Strict)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			for i := range c.Models {
				p := *c.Models[i].Path
				if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile("e.yaml", text, 0o600); err != nil {
				t.Fatal(err)
			}
			v := Validate("e.yaml", Strict, Environment{}, slog.New(slog.DiscardHandler))
			if !v.Valid || len(v.Warnings) > 0 {
				t.Errorf("%+v", v)
			}
		})
	}
}
