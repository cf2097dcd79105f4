package mrm_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

func TestFollowRefuses(t *testing.T) {
	in := points(1000, 100)
	s := mrm.New(mrm.Options{})
	defer s.Close()
	observeAll(t, s, in)
	for _, c := range []struct {
		name string
		o    mrm.Options
		want string
	}{
		{"a gap", mrm.Options{FirstRow: 1001}, "does not follow one that ends before row 1000"},
		{"an overlap", mrm.Options{FirstRow: 999}, "does not follow"},
		{"other metrics", mrm.Options{FirstRow: 1000, Metrics: mrm.Retention}, "of metrics retention_duration does not follow"},
	} {
		next := mrm.New(c.o)
		if err := s.Follow(next); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		next.Close()
	}
	next := mrm.New(mrm.Options{FirstRow: 1000})
	if err := s.Follow(next); err != nil {
		t.Errorf("an empty state behind: %v", err)
	}
	sameDocument(t, finish(t, s), tablesOf(t, in, mrm.Options{}))
}

func tablesOf(t tb, in []*observe.Batch, o mrm.Options) document {
	s := mrm.New(o)
	defer s.Close()
	observeAll(t, s, in)
	return finish(t, s)
}

func TestMetrics(t *testing.T) {
	all := tablesOf(t, points(20000, 500), mrm.Options{})
	for _, c := range []struct{ names, tables string }{
		{"retention_duration", "retention_per_region,retention_summary"},
		{"write_once_ratio", "write_once"},
		{"read_frequency", "read_freq"},
		{"working_set_size", "working_set_per_region,working_set_summary"},
		{"access_locality", "locality_per_region,locality_summary"},
		{"inter_access_interval", "iai"},
		{"retention_duration,write_once_ratio", "retention_per_region,retention_summary,write_once,suitability"},
		{"read_frequency,working_set_size,write_once_ratio,retention_duration",
			"retention_per_region,retention_summary,write_once,read_freq,working_set_per_region,working_set_summary,suitability,metrics_csv"},
		{"", tableNames},
	} {
		m, err := mrm.ParseMetrics(strings.FieldsFunc(c.names, func(r rune) bool { return r == ',' }))
		if err != nil {
			t.Fatal(err)
		}
		got := tablesOf(t, points(20000, 500), mrm.Options{Metrics: m})
		if names := strings.Join(got.order, ","); names != c.tables {
			t.Errorf("%s gives %s, want %s", c.names, names, c.tables)
		}
		for n, table := range got.tables {
			if err := differ(table, all.tables[n]); err != nil {
				t.Errorf("%s alone: %s: %v", c.names, n, err)
			}
		}
	}
	if _, err := mrm.ParseMetrics([]string{"retention"}); run.ClassOf(err) != run.Misuse {
		t.Errorf("unknown metric: %v", err)
	}
}

// TestTables checks the rows of the interface against those of the JSON.
func TestTables(t *testing.T) {
	in := points(20000, 500)
	want := tablesOf(t, in, mrm.Options{})
	s := mrm.New(mrm.Options{})
	defer s.Close()
	observeAll(t, s, in)
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 10 {
		t.Fatalf("%d tables", len(tables))
	}
	for _, table := range tables {
		if n := len(want.tables[table.Name].Rows); n != len(table.Rows) || n == 0 {
			t.Errorf("%s: %d rows, JSON has %d", table.Name, len(table.Rows), n)
		}
		for _, row := range table.Rows {
			for i, v := range row {
				switch v.(type) {
				case int64, uint64, float64, string, nil:
				default:
					t.Fatalf("%s.%s is a %T", table.Name, table.Columns[i].Name, v)
				}
			}
		}
	}
	if u := tables[0].Columns[2].Unit; u != "ns" {
		t.Errorf("unit of first_write_ns is %q", u)
	}
	var _ analyze.Analysis = s
}

func TestNotes(t *testing.T) {
	one, text := uint64(1), "x"
	load, id := "load", uint32(1)
	rows := []row{
		{time: &one, addr: &one, typ: &text, op: &load},
		{time: &one, addr: &one, id: &id, op: &load},
		{addr: &one, id: &id, typ: &text, op: &text},
		{time: &one, id: &id, typ: &text},
	}
	s := mrm.New(mrm.Options{})
	defer s.Close()
	observeAll(t, s, []*observe.Batch{batchOf(rows, observe.NewDict(), observe.NewDict())})
	r, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(r.Notes(), "\n")
	for _, want := range []string{
		"1 of 4 rows have no region id", "1 of 4 rows have no region type", "1 of 4 rows are neither load nor store",
		"1 of 4 rows have no operation", "1 of 4 rows have no time", "1 of 4 rows have no address",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("notes lack %q:\n%s", want, got)
		}
	}
}

// access is a row with everything but a type, if typ is "".
func access(time, addr uint64, id uint32, typ, op string) row {
	page := addr >> 12
	r := row{time: &time, addr: &addr, page: &page, id: &id, op: &op}
	if typ != "" {
		r.typ = &typ
	}
	return r
}

func oneBatch(rows []row) *observe.Batch {
	return batchOf(rows, observe.NewDict(), observe.NewDict())
}

// TestFollowSeam joins parts that are each in order of time but not together, or
// that begin at the same time with other types.
func TestFollowSeam(t *testing.T) {
	for name, parts := range map[string][][]row{
		"in order": {{access(10, 64, 1, "a", "store"), access(20, 4096, 1, "a", "load")}, {access(20, 8192, 1, "a", "load"), access(20, 64, 1, "a", "load")},
			{access(21, 8200, 1, "a", "load"), access(22, 8200, 1, "a", "load")}},
		"back in time": {{access(10, 64, 1, "a", "store"), access(20, 4096, 1, "a", "load")},
			{access(5, 640, 1, "a", "store"), access(30, 99999, 1, "a", "load")}, {access(31, 640, 1, "a", "store")}},
		"first types tie":            {{access(10, 64, 1, "", "store")}, {access(10, 64, 1, "a", "store"), access(10, 128, 1, "b", "load")}},
		"an earlier type":            {{access(10, 64, 1, "a", "store")}, {access(9, 64, 1, "b", "store")}},
		"other regions":              {{access(10, 64, 1, "a", "store")}, {access(9, 64, 2, "b", "store")}},
		"a region that only follows": {{access(1, 1, 7, "a", "x")}, {access(9, 64, 2, "b", "store"), access(3, 64, 2, "b", "store")}},
		"nothing between":            {{access(9, 64, 2, "b", "store")}, nil, {access(19, 128, 2, "b", "store")}},
		"nothing before":             {nil, {access(9, 64, 2, "b", "store")}},
	} {
		s := mrm.New(mrm.Options{})
		defer s.Close()
		for _, part := range parts {
			next := mrm.New(mrm.Options{FirstRow: s.Rows()})
			observeAll(t, next, []*observe.Batch{oneBatch(part)})
			if err := s.Follow(next); err != nil {
				t.Fatal(err)
			}
		}
		if sameAsReference(t, finish(t, s), reference(slices.Concat(parts...))); t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestSignedTimes has times 2^63 apart, which mrm-trace takes as going back.
func TestSignedTimes(t *testing.T) {
	got := tablesOf(t, []*observe.Batch{oneBatch([]row{
		access(5, 64, 1, "a", "load"), access(1<<63+10, 64, 1, "a", "load"), access(1<<63+12, 64, 1, "a", "load"),
	})}, mrm.Options{})
	if rows := got.tables["iai"].Rows; len(rows) != 1 || fmt.Sprint(rows[0]) != "[a 1 2 2 2 2.0]" {
		t.Errorf("intervals are %v", rows)
	}
}

// TestSpillFails gives the file system's error with its class and says what to do.
func TestSpillFails(t *testing.T) {
	s := mrm.New(mrm.Options{Memory: 1, TempDir: t.TempDir() + "/missing"})
	defer s.Close()
	err := s.Observe(points(10000, 100)[0])
	if !errors.Is(err, os.ErrNotExist) || run.ClassOf(err) != run.IO || !strings.Contains(err.Error(), "name another directory") {
		t.Errorf("missing directory: %v", err)
	}
}

func TestCheckEndsResult(t *testing.T) {
	stop := errors.New("stop")
	s := mrm.New(mrm.Options{Check: func() error { return stop }})
	defer s.Close()
	observeAll(t, s, points(1000, 100))
	if _, err := s.Result(); !errors.Is(err, stop) {
		t.Errorf("Result with a failing check: %v", err)
	}
}

func TestFloat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 4e-9: "4e-09", 1e16: "1e+16", 1e15: "1000000000000000.0", 123456789012345680: "1.2345678901234568e+17",
		0.0001: "0.0001", 0.00001: "1e-05", -2.5: "-2.5", 1.0 / 3: "0.3333333333333333", 1e100: "1e+100", 5e-324: "5e-324",
		9999999999999998: "9999999999999998.0",
	} {
		if got := mrm.Float(v); got != want {
			t.Errorf("Float(%g) = %s, want %s", v, got, want)
		}
	}
}
