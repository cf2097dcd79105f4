package analyze

import (
	"strings"
	"testing"
)

func TestWriteText(t *testing.T) {
	table := Table{Name: "things", Columns: []TableColumn{
		{Name: "region_type"}, {Name: "n_regions"}, {Name: "iai_p50_ns", Unit: "ns"}, {Name: "retention_ns", Unit: "ns"},
		{Name: "retention_s", Unit: "s"}, {Name: "total_bytes", Unit: "B"}, {Name: "ratio"}, {Name: "gaps"}, {Name: "ok"},
	}, Rows: [][]any{
		{"weight", uint64(3), int64(1500), int64(2e9), 2.0, uint64(8192), 0.5, int64(12), true},
		{"bad\x1b[2J\nname", uint64(12), nil, nil, nil, nil, nil, int64(-1), false},
	}}
	var out strings.Builder
	if err := table.WriteText(&out, 7); err != nil {
		t.Fatal(err)
	}
	want := `things (9 rows)
  region_type     n_regions  iai_p50  retention_ns  retention_s  total  ratio  gaps  ok
  weight          3          1.5 us   2 s           2 s          8 KiB  0.5    12    true
  bad?[2J?name    12         -        -             -            -      -      -1    false
  ... 7 more

`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") || strings.Contains(got, "\x1b") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasSuffix(line, " ") {
			t.Errorf("line ends in blanks: %q", line)
		}
	}
}
