// Package region says what an address belongs to: address ranges, symbol
// rules, the mappings of a process, and the life of KV-cache blocks.
//
// Two ways of looking live side by side. [Labeller] is mrm-trace's labeller to
// the letter, for its users' numbers. [Maps] and [KVBlocks] are tierscope's
// own: byte ranges instead of pages, lives instead of one generation a page.
//
// # Range list
//
// A JSON list of objects; other keys are ignored. kv_ranges.json has the same
// form.
//
//	key          type     meaning
//	addr_start   integer  first address
//	addr_end     integer  first address behind the range, up to 2^64
//	region_type  string   weight, kv_cache, activation, runtime, unknown or a name of one's own; null is kept as null
//
// # Label case
//
// A JSON object: a labeller, its ranges, and rows to label.
//
//	key            type              meaning
//	policy         string            keep, skip, error
//	ranges         range list        registered first, in order
//	input_columns  list of string    names of the columns of input
//	input          list of lists     one list a row; the text <absent> = the row lacks the column
//
// Columns: sample_id, timestamp_ns, phase, address, address_page, op_type,
// symbol, dso, region_type; others are ignored. Without address_page it is
// address >> 12. The other form has the keys columns (symbol, phase, op_type)
// and rows, and asks for the type that the symbol rules give.
package region

// pageShift is log2 of the page that mrm-trace labels by.
const pageShift = 12

// Range is a stretch of addresses of one type.
type Range struct {
	Start uint64
	End   uint64 // exclusive; an End at or below Start takes the one page of Start
	Type  Type
}

// Type is a region type, which in mrm-trace's files may be null.
type Type struct {
	Name string
	Null bool
}

// TypeOf returns the type called name.
func TypeOf(name string) Type { return Type{Name: name} }

func (t Type) String() string {
	if t.Null {
		return "null"
	}
	return t.Name
}

// pages returns the first and last page of the range.
func (r Range) pages() (first, last uint64) {
	end := r.Start
	if r.End > r.Start {
		end = r.End - 1
	}
	return r.Start >> pageShift, end >> pageShift
}
