package observe

// Number is what a numeric column can hold.
type Number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32 | ~int64
}

// Form says how a column keeps its values.
type Form uint8

const (
	// Absent: the source does not know this column; every row is null.
	Absent Form = iota
	// Const: every row holds First.
	Const
	// Run: row i holds First + i*Step.
	Run
	// Slice: row i holds Values[i].
	Slice
)

// Column is one column of a [Batch]. The zero value is an absent column, whose
// rows are all null. A column does not know its length; the batch does.
//
// Columns are values that share their slices: a sink that keeps one past the
// call that delivered it must copy. Not safe for concurrent writes.
type Column[T Number] struct {
	Form   Form
	First  T
	Step   T
	Values []T
	// Nulls marks null rows; nil means that no row of a present column is
	// null. Its length is the batch's.
	Nulls []bool
}

// ConstOf returns a column whose rows all hold v.
func ConstOf[T Number](v T) Column[T] { return Column[T]{Form: Const, First: v} }

// RunOf returns a column whose row i holds first + i*step.
func RunOf[T Number](first, step T) Column[T] {
	return Column[T]{Form: Run, First: first, Step: step}
}

// SliceOf returns a column whose row i holds v[i]. The slice is not copied.
func SliceOf[T Number](v []T) Column[T] { return Column[T]{Form: Slice, Values: v} }

// At returns the value of row i; 0 if the row is null.
func (c *Column[T]) At(i int) T {
	switch c.Form {
	case Const:
		return c.First
	case Run:
		return c.First + T(i)*c.Step
	case Slice:
		return c.Values[i]
	}
	return 0
}

// Null reports whether row i is null.
func (c *Column[T]) Null(i int) bool {
	return c.Form == Absent || c.Nulls != nil && c.Nulls[i]
}

// HasNulls reports whether any of the first n rows may be null.
func (c *Column[T]) HasNulls() bool { return c.Form == Absent || c.Nulls != nil }

// Slice returns the n values as a slice: the column's own when it has one (do
// not write to it), else buf filled and grown as needed. Null rows hold 0 or
// what the source left there; ask [Column.Null].
func (c *Column[T]) Slice(buf []T, n int) []T {
	if c.Form == Slice {
		return c.Values[:n]
	}
	if cap(buf) < n {
		buf = make([]T, n)
	}
	buf = buf[:n]
	v := c.First
	switch c.Form {
	case Absent:
		clear(buf)
	case Const:
		for i := range buf {
			buf[i] = v
		}
	case Run:
		for i := range buf {
			buf[i] = v
			v += c.Step
		}
	}
	return buf
}

// Dict numbers the strings of a stream. Codes are dealt in order of first
// appearance from 0 and never change. Not safe for concurrent use.
type Dict struct {
	strs  []string
	codes map[string]uint32
}

// NewDict returns a dictionary that already holds strs, in that order.
func NewDict(strs ...string) *Dict {
	d := &Dict{codes: make(map[string]uint32, len(strs))}
	for _, s := range strs {
		d.Code(s)
	}
	return d
}

// Code returns the code of s, adding it if it is new.
func (d *Dict) Code(s string) uint32 {
	if c, ok := d.codes[s]; ok {
		return c
	}
	c := uint32(len(d.strs))
	d.strs = append(d.strs, s)
	d.codes[s] = c
	return c
}

// Lookup returns the code of s and whether the dictionary has it.
func (d *Dict) Lookup(s string) (uint32, bool) { c, ok := d.codes[s]; return c, ok }

// String returns the string of a code that Code returned.
func (d *Dict) String(code uint32) string { return d.strs[code] }

// Len returns the number of strings, which is also the next new code.
func (d *Dict) Len() int { return len(d.strs) }

// Strings is a column of strings: codes into a dictionary. The dictionary may
// be shared between columns and batches of one stream and only ever grows, so
// a consumer can keep what it worked out per code while Dict is the same.
type Strings struct {
	Column[uint32]
	Dict *Dict
}

// ConstString returns a column whose rows all hold s, with d as dictionary.
func ConstString(d *Dict, s string) Strings {
	return Strings{ConstOf(d.Code(s)), d}
}

// Text returns the string of row i; "" if the row is null.
func (c *Strings) Text(i int) string {
	if c.Null(i) {
		return ""
	}
	return c.Dict.String(c.At(i))
}
