package house

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// resultsVar names the file with this run's events, as `go test -json` prints
// them; `make test` sets it when all other tests are done. Without it only the
// form of the tables and the existence of the tests are checked.
const resultsVar = "TIERSCOPE_TEST_RESULTS"

// TestParity checks docs/parity: every id of testdata/parity has its row, and
// every row is open or names tests that ran and passed.
func TestParity(t *testing.T) {
	lists, err := filepath.Glob("testdata/parity/*.txt")
	if err != nil || len(lists) == 0 {
		t.Fatal("no list of ids", err)
	}
	known := testFuncs(t)
	var ran map[string]string
	if path := os.Getenv(resultsVar); path != "" {
		ran = readResults(t, path)
	}
	for _, list := range lists {
		name := strings.TrimSuffix(filepath.Base(list), ".txt")
		t.Run(name, func(t *testing.T) {
			ids, must := readIDs(t, list)
			rows := parityRows(read(t, "docs/parity/"+name+".md"))
			var have []string
			for _, r := range rows {
				have = append(have, r.id)
			}
			if !slices.Equal(have, ids) {
				t.Errorf("rows are\n%v\nwant\n%v", have, ids)
			}
			for _, r := range rows {
				t.Run(r.id, func(t *testing.T) { r.check(t, known, ran, must[r.id]) })
			}
		})
	}
}

func readIDs(t *testing.T, path string) (ids []string, must map[string]bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	must = map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		ids = append(ids, f[0])
		must[f[0]] = len(f) > 1 && f[1] == "*"
	}
	return ids, must
}

// parityRow is a row of a parity table.
type parityRow struct {
	id, before, now, proof string
}

var parityID = regexp.MustCompile(`^[A-Z]\d+$`)

func parityRows(text string) []parityRow {
	var rows []parityRow
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if parityID.MatchString(cells[0]) {
			cells = append(cells, "", "", "")
			rows = append(rows, parityRow{cells[0], cells[1], cells[2], cells[3]})
		}
	}
	return rows
}

var proofForm = regexp.MustCompile("^`([^`]+)\\.((?:Test|Fuzz|Example)[^`]*)`$")

func (r parityRow) check(t *testing.T, known map[string]bool, ran map[string]string, must bool) {
	if r.before == "" || r.now == "" {
		t.Fatal("the row does not say what was and what is")
	}
	if r.proof == "open" {
		if must && ran != nil {
			t.Fatal("open, but no longer allowed to be")
		}
		return
	}
	for _, p := range strings.Split(r.proof, ", ") {
		m := proofForm.FindStringSubmatch(p)
		if m == nil {
			t.Errorf("proof %q is neither open nor `package.Test`", p)
			continue
		}
		dir, name := m[1], m[2]
		if err := exists(known, dir, name); err != nil {
			t.Error(err)
			continue
		}
		if ran == nil {
			continue
		}
		switch verdict(ran, dir+"."+name) {
		case "pass":
		case "skip":
			missing, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv(resultsVar)), "missing.txt"))
			if len(missing) == 0 {
				t.Errorf("%s.%s skipped itself although nothing is missing here", dir, name)
				continue
			}
			t.Skipf("%s.%s skipped itself; not installed: %s", dir, name, strings.Fields(string(missing)))
		case "fail":
			t.Errorf("%s.%s failed", dir, name)
		default:
			t.Errorf("%s.%s did not run", dir, name)
		}
	}
}

// testFuncs returns dir.Name of every test in the source.
func testFuncs(t *testing.T) map[string]bool {
	known := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				known[s.dir+"."+f.Name.Name] = true
			}
		}
	}
	return known
}

func exists(known map[string]bool, dir, name string) error {
	top, sub, _ := strings.Cut(name, "/")
	if !known[dir+"."+top] {
		return fmt.Errorf("%s has no test %s", dir, top)
	}
	if sub != "" && strings.HasPrefix(top, "TestScript") {
		script := filepath.Join(root, dir, "testdata", "script", sub+".txtar")
		if _, err := os.Stat(script); err != nil {
			return fmt.Errorf("script of %s.%s: %w", dir, name, err)
		}
	}
	return nil
}

// readResults returns the last word on every test by dir.Test, a failure being
// the last word wherever it stands.
func readResults(t *testing.T, path string) map[string]string {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ran := map[string]string{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(s.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
			continue
		}
		key := strings.TrimPrefix(e.Package, module+"/") + "." + e.Test
		if ran[key] != "fail" {
			ran[key] = e.Action
		}
	}
	if s.Err() != nil || len(ran) == 0 {
		t.Fatalf("%s holds no results (%v)", path, s.Err())
	}
	return ran
}

// verdict is the result of a test; a test all of whose parts skipped themselves
// has proved nothing.
func verdict(ran map[string]string, name string) string {
	r := ran[name]
	if r != "pass" {
		return r
	}
	parts, skipped := 0, 0
	for other, v := range ran {
		if strings.HasPrefix(other, name+"/") {
			parts++
			if v == "skip" {
				skipped++
			}
		}
	}
	if parts > 0 && parts == skipped {
		return "skip"
	}
	return "pass"
}

// TestProofs shows that the check of a row bites.
func TestProofs(t *testing.T) {
	ran := map[string]string{"a.TestX": "pass", "a.TestX/one": "skip", "a.TestY": "pass", "a.TestY/one": "skip",
		"a.TestY/two": "pass", "a.TestZ": "fail"}
	for name, want := range map[string]string{"a.TestX": "skip", "a.TestY": "pass", "a.TestZ": "fail", "a.TestW": ""} {
		if got := verdict(ran, name); got != want {
			t.Errorf("verdict(%s) = %q, want %q", name, got, want)
		}
	}
	known := map[string]bool{"internal/house.TestProofs": true}
	if err := exists(known, "internal/house", "TestProofs/any"); err != nil {
		t.Error(err)
	}
	if exists(known, "internal/house", "TestNone") == nil {
		t.Error("a test that does not exist was found")
	}
	rows := parityRows("| id | x |\n|---|---|\n| M1 | was | is | `a.TestX` |\n| M2 | was |\n")
	if len(rows) != 2 || rows[0].proof != "`a.TestX`" || rows[1].proof != "" {
		t.Errorf("rows = %v", rows)
	}
}
