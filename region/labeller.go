package region

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// unknownID and weightID are the two region ids that are always the same.
const (
	unknownID = 0
	weightID  = 1
)

// Type codes of a labeller, as its dictionary deals them. Codes are stored
// plus one, so that 0 is "none".
const (
	codeUnknown uint32 = iota
	codeWeight
	codeKV
	codeRuntime
)

// nullType marks a page or region whose type is null.
const nullType = ^uint32(0)

// page is what a labeller knows of one page that an access has touched.
type page struct {
	typ   uint32 // type code + 1; 0 none
	id    uint32 // region of what is neither weight nor KV; 0 none
	block int32  // index of the KV entry + 1; 0 none
}

// stats is a row of the region map.
type stats struct {
	typ              uint32 // type code, or nullType
	pageMin, pageMax uint64
	first, last      uint64
	count            uint64
}

// Labeller labels accesses as mrm-trace's TraceLabeller does, row for row: a
// type that the row brings wins, then the type of its 4 KiB page, then the
// symbol rules. Weights are region 1; KV accesses have a region for each exact
// address; everything else one for each page, whatever its type; ids are dealt
// from 2 in order of first appearance. A labelled row gives its type to its
// page if that has none.
//
// Where ranges were spread over pages, they are kept as spans here: memory
// grows with the pages touched, not with the bytes registered. Not safe for
// concurrent use.
type Labeller struct {
	policy Policy
	rules  []Rule
	table  spanTable

	types   *observe.Dict
	pageAt  map[uint64]uint32 // page number -> index in pages
	pages   []page
	lastNo  uint64 // the page met last, and where it is
	lastAt  uint32
	kvIDs   map[uint64]uint32
	regions []stats // index = id - 1
	weights int     // position of region 1 in order of appearance, -1 = not seen
	blocks  []kvEntry

	in   dicts
	out  observe.Batch
	rt   []uint32
	null []bool
	id   []uint32
	keep []int32

	rows, skipped, unknown uint64
}

// NewLabeller returns a labeller with the given policy and rules; nil rules
// are [DefaultRules].
func NewLabeller(policy Policy, rules []Rule) *Labeller {
	if rules == nil {
		rules = DefaultRules
	}
	return &Labeller{
		policy: policy, rules: rules,
		types:  observe.NewDict(observe.ClassUnknown, observe.ClassWeight, observe.ClassKVCache, observe.ClassRuntime),
		pageAt: map[uint64]uint32{}, kvIDs: map[uint64]uint32{},
		lastNo:  ^uint64(0),
		regions: make([]stats, 1), weights: -1,
	}
}

// Rows returns how many rows the labeller was given, how many of them it left
// out under [Skip], and how many it let pass as unknown.
func (l *Labeller) Rows() (given, skipped, unknown uint64) { return l.rows, l.skipped, l.unknown }

// Register gives the pages of ranges their types, in order, and returns how
// many pages had none before. A page keeps the type it got first.
func (l *Labeller) Register(ranges []Range) uint64 {
	added := make([]span, len(ranges))
	for i, r := range ranges {
		first, last := r.pages()
		added[i] = span{first, last, l.code(r.Type) + 1}
	}
	claimed := spanTable{l.table.add(added)}
	var n uint64
	for _, s := range claimed.spans {
		n += s.last - s.first + 1
	}
	for no, at := range l.pageAt { // pages that rows have already touched
		if s, ok := claimed.find(no); ok {
			if p := &l.pages[at]; p.typ != 0 {
				n--
			} else {
				p.typ = s.typ
			}
		}
	}
	return n
}

// code returns the code of t; that of null plus one is not 0.
func (l *Labeller) code(t Type) uint32 {
	if t.Null {
		return nullType - 1
	}
	return l.types.Code(t.Name)
}

// pageOf returns the state of a page.
func (l *Labeller) pageOf(no uint64) *page {
	if no == l.lastNo {
		return &l.pages[l.lastAt]
	}
	at, ok := l.pageAt[no]
	if !ok {
		at = uint32(len(l.pages))
		p := page{}
		if s, found := l.table.find(no); found {
			p.typ = s.typ
		}
		l.pages = append(l.pages, p)
		l.pageAt[no] = at
	}
	l.lastNo, l.lastAt = no, at
	return &l.pages[at]
}

// row is one access on its way through the labeller.
type row struct {
	address, page, time uint64
	typ                 uint32 // type code it brings; codeUnknown if none
	store               bool
}

// label gives a row its type and id. The rules are asked through classify, as
// late as can be. known is false where nothing says what the row is.
func (l *Labeller) label(r row, classify func() uint32) (typ, id uint32, known bool, err error) {
	p := l.pageOf(r.page)
	typ = r.typ
	if typ == codeUnknown {
		if p.typ != 0 && p.typ != nullType {
			typ = p.typ - 1
		} else {
			typ = classify()
		}
	}
	spread := true
	if typ == codeUnknown {
		if l.policy != Runtime {
			return typ, unknownID, false, nil
		}
		typ, spread = codeRuntime, false
	}
	if id, err = l.region(r, p, typ); err != nil {
		return 0, 0, false, err
	}
	if spread && p.typ == 0 {
		p.typ = typ + 1
		if typ == nullType {
			p.typ = nullType
		}
	}
	if typ == codeKV {
		l.record(r, p, id)
	}
	return typ, id, true, nil
}

// region returns the id of the region that r lies in and counts the access.
func (l *Labeller) region(r row, p *page, typ uint32) (id uint32, err error) {
	switch typ {
	case codeWeight:
		id = weightID
		if l.weights < 0 {
			l.weights = len(l.regions) - 1
			l.regions[0] = stats{typ: typ, pageMin: r.page, pageMax: r.page, first: r.time, last: r.time}
		}
	case codeKV:
		if id = l.kvIDs[r.address]; id == 0 {
			if id, err = l.newRegion(r, typ); err != nil {
				return 0, err
			}
			l.kvIDs[r.address] = id
		}
	default:
		if p.id == 0 {
			if p.id, err = l.newRegion(r, typ); err != nil {
				return 0, err
			}
		}
		id = p.id
	}
	s := &l.regions[id-1]
	s.count++
	s.last = max(s.last, r.time)
	s.pageMin = min(s.pageMin, r.page)
	s.pageMax = max(s.pageMax, r.page)
	return id, nil
}

func (l *Labeller) newRegion(r row, typ uint32) (uint32, error) {
	if uint64(len(l.regions)) >= 1<<32-1 {
		return 0, run.Errorf(run.Invalid, "row %d: more than %d regions; region_id has 32 bits", l.rows, uint64(1<<32-2))
	}
	l.regions = append(l.regions, stats{typ: typ, pageMin: r.page, pageMax: r.page, first: r.time, last: r.time})
	return uint32(len(l.regions)), nil
}

// typeOf is the type that a code stands for.
func (l *Labeller) typeOf(code uint32) Type {
	if code == nullType {
		return Type{Null: true}
	}
	return TypeOf(l.types.String(code))
}
