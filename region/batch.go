package region

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// Columns are the columns that [Labeller.Label] looks at. Of these only the
// address is needed; a row without a region type, symbol, operation or time
// counts as unknown, "", load and 0.
const Columns = observe.ColAddress | observe.ColAddressPage | observe.ColTime | observe.ColOpType |
	observe.ColPhase | observe.ColSymbol | observe.ColDSO | observe.ColRegionType

// dicts holds what the labeller worked out for the codes of the stream's
// dictionaries, as long as those stay the same.
type dicts struct {
	regionType, op, phase, symbol, dso *observe.Dict

	types  []uint32 // region type code of the stream -> of the labeller
	stores []bool   // operation code -> is store
	byRule map[ruleKey]uint32
}

// ruleKey is one combination of codes, each plus one; 0 = null.
type ruleKey struct{ symbol, dso, phase, op uint32 }

// follow forgets what belonged to dictionaries other than those of b and
// takes in new codes.
func (d *dicts) follow(l *Labeller, b *observe.Batch) {
	if d.regionType != b.RegionType.Dict {
		d.regionType, d.types = b.RegionType.Dict, d.types[:0]
	}
	for d.regionType != nil && len(d.types) < d.regionType.Len() {
		d.types = append(d.types, l.types.Code(d.regionType.String(uint32(len(d.types)))))
	}
	if d.op != b.OpType.Dict {
		d.stores, d.byRule = d.stores[:0], nil
	}
	if d.phase != b.Phase.Dict || d.symbol != b.Symbol.Dict || d.dso != b.DSO.Dict || d.byRule == nil {
		d.byRule = map[ruleKey]uint32{}
	}
	d.op, d.phase, d.symbol, d.dso = b.OpType.Dict, b.Phase.Dict, b.Symbol.Dict, b.DSO.Dict
	for d.op != nil && len(d.stores) < d.op.Len() {
		d.stores = append(d.stores, d.op.String(uint32(len(d.stores))) == observe.Store)
	}
}

func code(c *observe.Strings, i int) uint32 {
	if c.Null(i) {
		return 0
	}
	return c.At(i) + 1
}

// byRules returns the type code that the symbol rules give row i.
func (l *Labeller) byRules(b *observe.Batch, i int) uint32 {
	k := ruleKey{code(&b.Symbol, i), code(&b.DSO, i), code(&b.Phase, i), code(&b.OpType, i)}
	if t, ok := l.in.byRule[k]; ok {
		return t
	}
	t := codeUnknown
	if name, ok := Classify(l.rules, Access{b.Symbol.Text(i), b.DSO.Text(i), b.Phase.Text(i), l.op(b, i)}); ok {
		t = l.types.Code(name)
	}
	l.in.byRule[k] = t
	return t
}

// op is the operation of row i; one that the source does not know is a load.
func (l *Labeller) op(b *observe.Batch, i int) string {
	if b.OpType.Form == observe.Absent {
		return observe.Load
	}
	return b.OpType.Text(i)
}

// Label labels the rows of b and returns them with region type and id filled
// in; all other columns pass unchanged, and b is not written to. A present
// region type that is null is a type of its own, as in the original. Under
// [Skip] the rows that are not known are left out; under [Fail] the rows before
// the first such row are returned together with an [*UnknownError], and
// labelling is over. The result belongs to the labeller again at the next call.
func (l *Labeller) Label(b *observe.Batch) (*observe.Batch, error) {
	l.in.follow(l, b)
	l.rt, l.id, l.null, l.keep = l.rt[:0], l.id[:0], l.null[:0], l.keep[:0]
	nulls, err := false, error(nil)
	for i := 0; i < b.Len; i++ {
		if b.Address.Null(i) {
			err = run.Errorf(run.Invalid, "row %d: no address", l.rows)
			break
		}
		r := row{address: b.Address.At(i), time: b.Time.At(i)}
		r.page = r.address >> pageShift
		if !b.AddressPage.Null(i) {
			r.page = b.AddressPage.At(i)
		}
		if !b.OpType.Null(i) {
			r.store = l.in.stores[b.OpType.At(i)]
		}
		if b.RegionType.Form != observe.Absent {
			r.typ = nullType
			if !b.RegionType.Null(i) {
				r.typ = l.in.types[b.RegionType.At(i)]
			}
		}
		typ, id, known, e := l.label(r, func() uint32 { return l.byRules(b, i) })
		if e != nil {
			err = e
			break
		}
		if !known && l.policy == Fail {
			err = &UnknownError{Row: l.rows, Page: r.page, Address: r.address, Symbol: b.Symbol.Text(i), DSO: b.DSO.Text(i)}
			break
		}
		l.rows++
		if !known && l.policy == Skip {
			l.skipped++
			continue
		}
		if !known {
			l.unknown++
		}
		isNull := typ == nullType
		if isNull {
			nulls, typ = true, codeUnknown
		}
		l.rt, l.id, l.null, l.keep = append(l.rt, typ), append(l.id, id), append(l.null, isNull), append(l.keep, int32(i))
	}
	l.out = *b
	if len(l.keep) < b.Len {
		l.out = b.Keep(l.keep)
	}
	l.out.RegionType = observe.Strings{Column: observe.SliceOf(l.rt), Dict: l.types}
	if nulls {
		l.out.RegionType.Nulls = l.null
	}
	l.out.RegionID = observe.SliceOf(l.id)
	return &l.out, err
}
