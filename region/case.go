package region

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// absent stands for a missing key in the rows of a case.
const absent = "<absent>"

// Case is a label case: rows to label, or symbols to classify. Its form is in
// the package comment.
type Case struct {
	Policy  string              `json:"policy"`
	Ranges  []rangeJSON         `json:"ranges"`
	Columns []string            `json:"input_columns"`
	Input   [][]json.RawMessage `json:"input"`

	SymbolColumns []string    `json:"columns"`
	Symbols       [][]*string `json:"rows"`
}

// Result is what labelling a case gives. Cells are numbers, strings or nil.
type Result struct {
	PagesRegistered uint64   `json:"pages_registered"`
	Labelled        [][3]any `json:"labelled"` // sample_id, region_type, region_id
	MapColumns      []string `json:"region_map_columns"`
	Map             [][]any  `json:"region_map"`
	KVColumns       []string `json:"kv_lifecycle_columns"`
	KV              [][]any  `json:"kv_lifecycle"`
	Error           string   `json:"error,omitempty"`
}

// SymbolResult is what classifying the symbols of a case gives: its rows with
// the type by the default rules behind, nil where none fits.
type SymbolResult struct {
	Columns []string    `json:"columns"`
	Rows    [][]*string `json:"rows"`
}

// ReadCase reads a label case. Text that is not JSON is corrupt, JSON that is
// no case is invalid.
func ReadCase(r io.Reader) (*Case, error) {
	var c Case
	if err := readJSON(r, &c); err != nil {
		return nil, err
	}
	if c.Columns == nil && c.SymbolColumns == nil {
		return nil, run.Errorf(run.Invalid, "case has neither input_columns nor columns; it is no label case")
	}
	return &c, nil
}

// readJSON reads one JSON document and nothing behind it.
func readJSON(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return run.Errorf(run.Corrupt, "json: more text behind the document at byte %d", d.InputOffset())
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return run.Errorf(run.Invalid, "json: %s at byte %d where a %s is wanted in %q", kind.Value, kind.Offset, kind.Type, kind.Field)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return run.Errorf(run.Corrupt, "json: %w at byte %d", err, syntax.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return run.Errorf(run.Corrupt, "json: document ends early")
	}
	return err
}

// Classify gives every symbol of a case its type by the default rules. The
// rows' own last column, if it is region_type, is replaced.
func (c *Case) Classify() (*SymbolResult, error) {
	at := map[string]int{}
	for i, name := range c.SymbolColumns {
		at[name] = i
	}
	sym, ok := at["symbol"]
	if !ok {
		return nil, run.Errorf(run.Invalid, "columns: no symbol among them")
	}
	out := &SymbolResult{Columns: []string{"symbol", "phase", "op_type", "region_type"}, Rows: [][]*string{}}
	for n, row := range c.Symbols {
		if len(row) != len(c.SymbolColumns) {
			return nil, run.Errorf(run.Invalid, "rows[%d]: %d cells for %d columns", n, len(row), len(c.SymbolColumns))
		}
		cell := func(name string) *string {
			if i, ok := at[name]; ok {
				return row[i]
			}
			return nil
		}
		text := func(p *string) string {
			if p == nil {
				return ""
			}
			return *p
		}
		phase, op := cell("phase"), cell("op_type")
		res := []*string{row[sym], phase, op, nil}
		if typ, ok := Classify(DefaultRules, Access{text(row[sym]), text(cell("dso")), text(phase), text(op)}); ok {
			res[3] = &typ
		}
		out.Rows = append(out.Rows, res)
	}
	return out, nil
}

// Label runs a case through a labeller. Under the policy error the result
// holds the rows before the one that is not known, and the error is an
// [*UnknownError], which the result repeats.
func (c *Case) Label() (*Result, error) {
	policy, err := ParsePolicy(c.Policy)
	if err != nil {
		return nil, err
	}
	ranges, err := toRanges(c.Ranges)
	if err != nil {
		return nil, err
	}
	batch, ids, err := c.batch()
	if err != nil {
		return nil, err
	}
	l := NewLabeller(policy, nil)
	res := &Result{
		PagesRegistered: l.Register(ranges), Labelled: [][3]any{}, Map: [][]any{}, KV: [][]any{},
		MapColumns: []string{"region_id", "region_type", "page_min", "page_max", "first_seen_ns", "last_seen_ns", "access_count"},
		KVColumns:  []string{"block_id", "address", "address_page", "write_ns", "last_read_ns", "evict_ns", "total_reads", "lifetime_ns"},
	}
	out, err := l.Label(batch)
	var unknown *UnknownError
	if err != nil && !errors.As(err, &unknown) {
		return nil, err
	}
	if unknown != nil {
		res.Error = unknown.Error()
	}
	for i := range out.Len {
		res.Labelled = append(res.Labelled, [3]any{ids[out.SampleID.At(i)], cell(out.RegionType.Null(i), out.RegionType.Text(i)), out.RegionID.At(i)})
	}
	for _, r := range l.Map() {
		res.Map = append(res.Map, []any{r.RegionID, cell(r.NoType, r.RegionType), r.PageMin, r.PageMax, r.FirstSeenNS, r.LastSeenNS, r.AccessCount})
	}
	for _, r := range l.Lifecycle() {
		var evict any
		if r.Evicted {
			evict = r.EvictNS
		}
		res.KV = append(res.KV, []any{r.BlockID, r.Address, r.AddressPage, r.WriteNS, r.LastReadNS, evict, r.TotalReads, r.LifetimeNS})
	}
	return res, err
}

func cell(null bool, s string) any {
	if null {
		return nil
	}
	return s
}

// batch turns the rows of a case into a batch whose sample ids are row numbers,
// beside the ids that the rows have.
func (c *Case) batch() (*observe.Batch, []json.RawMessage, error) {
	n := len(c.Input)
	ids := make([]json.RawMessage, n)
	d := observe.NewDict()
	b := &observe.Batch{Len: n, SampleID: observe.RunOf[uint64](0, 1)}
	texts := map[string]*observe.Strings{"phase": &b.Phase, "op_type": &b.OpType, "symbol": &b.Symbol, "dso": &b.DSO, "region_type": &b.RegionType}
	numbers := map[string]*observe.Column[uint64]{"timestamp_ns": &b.Time, "address": &b.Address, "address_page": &b.AddressPage}
	missing := map[string]string{"op_type": observe.Load, "region_type": observe.ClassUnknown}
	for j, name := range c.Columns {
		text, number := texts[name], numbers[name]
		switch {
		case text != nil:
			*text = observe.Strings{Column: observe.SliceOf(make([]uint32, n)), Dict: d}
			text.Nulls = make([]bool, n)
		case number != nil:
			*number = observe.SliceOf(make([]uint64, n))
			number.Nulls = make([]bool, n)
		case name != "sample_id":
			continue
		}
		for i, row := range c.Input {
			if len(row) != len(c.Columns) {
				return nil, nil, run.Errorf(run.Invalid, "input[%d]: %d cells for %d columns", i, len(row), len(c.Columns))
			}
			raw := row[j]
			isAbsent := string(raw) == `"`+absent+`"`
			if number == nil && text == nil {
				if !isAbsent {
					ids[i] = raw
				}
				continue
			}
			var err error
			switch {
			case isAbsent && text != nil && missing[name] != "":
				text.Values[i] = d.Code(missing[name])
			case isAbsent || string(raw) == "null":
				if number != nil {
					number.Nulls[i] = true
				} else {
					text.Nulls[i] = true
				}
			case number != nil:
				err = json.Unmarshal(raw, &number.Values[i])
			default:
				var s string
				err = json.Unmarshal(raw, &s)
				text.Values[i] = d.Code(s)
			}
			if err != nil {
				return nil, nil, run.Errorf(run.Invalid, "input[%d].%s: %s is no value for this column", i, name, raw)
			}
		}
	}
	return b, ids, nil
}
