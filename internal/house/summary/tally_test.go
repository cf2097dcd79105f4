package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFollow(t *testing.T) {
	const p = `"Package":"github.com/tierscope/tierscope/run"`
	for name, c := range map[string]struct {
		in   []string
		err  string
		want []string // in the closing part, in order
		not  string
	}{
		"passed": {
			in: []string{`{"Action":"run",` + p + `,"Test":"TestA"}`, `{"Action":"output",` + p + `,"Test":"TestA","Output":"chat\n"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`, `{"Action":"pass",` + p + `,"Elapsed":1.5}`},
			want: []string{"ok   run", "1.5s", "1 tests", "\n1 passed, 0 failed, 0 skipped\n"}, not: "chat",
		},
		"failed and skipped": {
			in: []string{`{"Action":"output",` + p + `,"Test":"TestA","Output":"    a_test.go:3: is 4, want 5\n"}`,
				`{"Action":"fail",` + p + `,"Test":"TestA"}`,
				`{"Action":"output",` + p + `,"Test":"TestB","Output":"    a_test.go:9: needs root\n"}`,
				`{"Action":"skip",` + p + `,"Test":"TestB"}`, `{"Action":"fail",` + p + `}`},
			err: "1 failed",
			want: []string{"FAIL run", "--- FAIL: run.TestA", "is 4, want 5", "skipped: needs root", "run.TestB",
				"0 passed, 1 failed, 1 skipped"},
		},
		"a package that died": {
			in: []string{`{"Action":"pass",` + p + `,"Test":"TestA"}`, `{"Action":"output",` + p + `,"Output":"panic: no\n"}`,
				`{"Action":"fail",` + p + `}`},
			err: "1 failed", want: []string{"--- FAIL: run", "panic: no", "1 passed, 1 failed, 0 skipped"},
		},
		"a package that does not build": {
			in: []string{`{"ImportPath":"x [x.test]","Action":"build-output","Output":"a.go:1: no\n"}`,
				`{"ImportPath":"x [x.test]","Action":"build-fail"}`, `{"Action":"fail",` + p + `,"FailedBuild":"x [x.test]"}`},
			err: "1 failed", want: []string{"--- FAIL: run", "a.go:1: no", "0 passed, 1 failed, 0 skipped"},
		},
		"nothing": {in: []string{"go: no packages"}, err: "no test ran", want: []string{"go: no packages", "0 passed, 0 failed, 0 skipped"}},
		"a failure that another part repeats as passed": {
			in:  []string{`{"Action":"fail",` + p + `,"Test":"TestA"}`, `{"Action":"pass",` + p + `,"Test":"TestA"}`},
			err: "1 failed", want: []string{"0 passed, 1 failed, 0 skipped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events")
			var out strings.Builder
			err := follow(path, true, strings.NewReader(strings.Join(c.in, "\n")), &out)
			if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("error is %v, want %q", err, c.err)
			}
			rest := out.String()
			for _, w := range c.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("no %q in order in\n%s", w, out.String())
				}
				rest = after
			}
			if c.not != "" && strings.Contains(out.String(), c.not) {
				t.Errorf("%q is printed:\n%s", c.not, out.String())
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range c.in {
				if strings.HasPrefix(line, "{") && !strings.Contains(string(kept), line+"\n") {
					t.Errorf("event is not kept: %s", line)
				}
			}
		})
	}
}
