package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/fetch"
)

// TestModelFetch asks for what is in the user's cache: its paths are printed,
// nothing else is said.
func TestModelFetch(t *testing.T) {
	model, ok := fetch.CachedModel()
	libs, okLibs := fetch.CachedLibs()
	if !ok || !okLibs {
		t.Skip("model and libraries are not in the cache: 'tierscope model fetch'")
	}
	for _, args := range []string{"model fetch", "model fetch smollm2 libs", "model fetch --json"} {
		var out, log bytes.Buffer
		a := &app{stdout: &out, stderr: &log}
		root := newRoot(a)
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); err != nil || log.Len() > 0 {
			t.Fatalf("%s: %v, said %q", args, err, log.String())
		}
		if !a.json {
			if got := out.String(); got != model+"\n"+libs+"\n" {
				t.Errorf("%s: %q", args, got)
			}
			continue
		}
		var doc struct {
			Items []struct{ Name, Path, Licence string }
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Items) != 2 || doc.Items[0].Path != model || doc.Items[1].Path != libs || doc.Items[0].Licence != "Apache-2.0" {
			t.Errorf("%s: %+v", args, doc)
		}
	}
}
