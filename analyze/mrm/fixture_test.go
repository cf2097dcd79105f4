package mrm_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/trace"
)

// tb is what a test and a property have in common.
type tb interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// document is a fixture or our own JSON: tables by name, numbers as written.
type document struct {
	tables map[string]*tableDoc
	order  []string
	csv    string
	hasCSV bool
}

type tableDoc struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

func decode(t tb, text []byte) document {
	t.Helper()
	d := document{tables: map[string]*tableDoc{}}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		name := key.(string)
		d.order = append(d.order, name)
		if name == "metrics_csv" {
			d.hasCSV = true
			if err := dec.Decode(&d.csv); err != nil {
				t.Fatal(err)
			}
			continue
		}
		table := new(tableDoc)
		if err := dec.Decode(table); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.tables[name] = table
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	return d
}

// differ says where got and want are not the same: integers, text, order and
// quantiles exactly, other doubles to 1e-12.
func differ(got, want *tableDoc) error {
	if strings.Join(got.Columns, ",") != strings.Join(want.Columns, ",") {
		return fmt.Errorf("columns %v, want %v", got.Columns, want.Columns)
	}
	for i := 0; i < len(got.Rows) && i < len(want.Rows); i++ {
		for k := range want.Columns {
			if !same(got.Rows[i][k], want.Rows[i][k], exactColumns[want.Columns[k]]) {
				return fmt.Errorf("row %d: %s is %v, want %v\n got %v\nwant %v", i, want.Columns[k],
					got.Rows[i][k], want.Rows[i][k], got.Rows[i], want.Rows[i])
			}
		}
	}
	if len(got.Rows) != len(want.Rows) {
		return fmt.Errorf("%d rows, want %d", len(got.Rows), len(want.Rows))
	}
	return nil
}

// exactColumns are the doubles that have to be the same to the last bit.
var exactColumns = map[string]bool{"retention_s": true, "retention_p50_s": true, "retention_p90_s": true, "retention_p99_s": true,
	"read_fraction": true, "reads_per_write": true, "write_once_ratio": true, "median_stride_bytes": true}

func same(got, want any, exact bool) bool {
	g, ok1 := got.(json.Number)
	w, ok2 := want.(json.Number)
	if !ok1 || !ok2 {
		return got == want
	}
	return sameNumber(g.String(), w.String(), exact)
}

func sameNumber(got, want string, exact bool) bool {
	if got == want {
		return true
	}
	if !strings.ContainsAny(want, ".eE") || !strings.ContainsAny(got, ".eE") {
		return false
	}
	a, err1 := strconv.ParseFloat(got, 64)
	b, err2 := strconv.ParseFloat(want, 64)
	return err1 == nil && err2 == nil && (a == b || !exact && math.Abs(a-b) <= 1e-12*math.Abs(b))
}

func differCSV(got, want string) error {
	a, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil {
		return err
	}
	b, err := csv.NewReader(strings.NewReader(want)).ReadAll()
	if err != nil {
		return err
	}
	if len(a) != len(b) {
		return fmt.Errorf("metrics_csv has %d lines, want %d", len(a), len(b))
	}
	for i := range b {
		for k := range b[i] {
			if !sameNumber(a[i][k], b[i][k], exactColumns[b[0][k]]) {
				return fmt.Errorf("metrics_csv line %d: %q, want %q", i, a[i], b[i])
			}
		}
	}
	return nil
}

// analyzeFile runs a state over a trace file.
func analyzeFile(t tb, path string, o mrm.Options) document {
	t.Helper()
	in, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := mrm.New(o)
	defer s.Close()
	if err := in.Read(s.Columns(), s.Observe); err != nil {
		t.Fatal(err)
	}
	return finish(t, s)
}

func finish(t tb, s *mrm.State) document {
	t.Helper()
	r, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Fatalf("not JSON: %s", out.Bytes())
	}
	return decode(t, out.Bytes())
}

const tableNames = "retention_per_region,retention_summary,write_once,read_freq,working_set_per_region,working_set_summary," +
	"locality_per_region,locality_summary,iai,suitability,metrics_csv"

// TestFixtures compares all tables with what mrm-trace 0.1.23 itself gave.
func TestFixtures(t *testing.T) {
	cases, err := filepath.Glob("testdata/analyse/*/trace.parquet")
	if err != nil || len(cases) != 21 {
		t.Fatalf("%d cases, want 21 (%v)", len(cases), err)
	}
	for _, path := range cases {
		dir := filepath.Dir(path)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			got := analyzeFile(t, path, mrm.Options{})
			if order := strings.Join(got.order, ","); order != tableNames {
				t.Errorf("tables %s, want %s", order, tableNames)
			}
			text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "empty" {
				checkEmpty(t, got)
				return
			}
			want := decode(t, text)
			if text, err := os.ReadFile(filepath.Join(dir, "expected_signed.json")); err == nil {
				signed := decode(t, text)
				for n, table := range signed.tables {
					want.tables[n] = table
				}
				if signed.hasCSV {
					want.csv = signed.csv
				}
			}
			if len(want.tables) != 10 {
				t.Fatalf("fixture has %d tables", len(want.tables))
			}
			for n, table := range want.tables {
				if err := differ(got.tables[n], table); err != nil {
					t.Errorf("%s: %v", n, err)
				}
			}
			if err := differCSV(got.csv, want.csv); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkEmpty(t *testing.T, got document) {
	for _, n := range strings.Split(tableNames, ",")[:10] {
		if table := got.tables[n]; len(table.Rows) != 0 || len(table.Columns) < 4 {
			t.Errorf("%s of an empty trace: %d columns, %d rows", n, len(table.Columns), len(table.Rows))
		}
	}
	if strings.Count(got.csv, "\n") != 1 || !strings.HasPrefix(got.csv, "region_type,") {
		t.Errorf("metrics_csv of an empty trace is %q", got.csv)
	}
}

// TestFixturesSpilled gives the same with next to no memory.
func TestFixturesSpilled(t *testing.T) {
	for _, name := range []string{"mixed_large", "mixed_small", "unsorted", "percentiles"} {
		path := filepath.Join("testdata/analyse", name, "trace.parquet")
		want := analyzeFile(t, path, mrm.Options{})
		got := analyzeFile(t, path, mrm.Options{Memory: 1 << 10, TempDir: t.TempDir()})
		sameDocument(t, got, want)
	}
}

func sameDocument(t tb, got, want document) {
	t.Helper()
	for _, n := range want.order {
		if n == "metrics_csv" {
			if got.csv != want.csv {
				t.Errorf("metrics_csv\n%s\nwant\n%s", got.csv, want.csv)
			}
			continue
		}
		if err := differ(got.tables[n], want.tables[n]); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
}
