package trace

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// Options say how a file is written. The zero value is the default.
type Options struct {
	// Compression is zstd (the default), snappy, gzip or none.
	Compression string
	// Level is the compression level; 0 = fastest.
	Level int
	// RowGroupRows is how many rows a row group has at most; 0 = 1,000,000. A
	// row group ends earlier when it has 8 MiB.
	RowGroupRows int
	// Columns are the columns that trace.parquet gets; 0 = all.
	// [observe.ColsCompat] are mrm-trace's.
	Columns observe.Cols
}

const (
	defaultGroupRows = 1_000_000
	groupBytes       = 8 << 20
	// pageRows is the same for all columns, so that a batch of a page's rows
	// is read without copying.
	pageRows = 1 << 15
	// maxGroups is the most that the format can number.
	maxGroups = 1<<15 - 1
)

// Keys of the footer.
const (
	keyMRMVersion = "mrm_trace_schema_version"
	keySchema     = "tierscope_schema"
)

// file is a Parquet file in the making.
type file struct {
	out     *run.Atomic
	cols    []column
	schema  string
	off     int64
	staged  int
	grouped int // rows of the row group that are in pages
	rows    int64
	maxRows int
	groups  []format.RowGroup
	err     error
}

func newFile(out *run.Atomic, schema string, opts Options, cols []column) (*file, error) {
	codec, err := codecOf(opts.Compression)
	if err != nil {
		return nil, err
	}
	comp, err := newCompressor(codec, opts.Level)
	if err != nil {
		return nil, err
	}
	f := &file{out: out, schema: schema, cols: cols, maxRows: opts.RowGroupRows}
	if f.maxRows <= 0 {
		f.maxRows = defaultGroupRows
	}
	for _, c := range cols {
		c.open(comp)
	}
	return f, f.write([]byte("PAR1"))
}

func (f *file) write(parts ...[]byte) error {
	for _, p := range parts {
		n, err := f.out.Write(p)
		f.off += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// room is how many rows may be staged before flushing is due.
func (f *file) room() int { return min(pageRows, f.maxRows-f.grouped) - f.staged }

// advance says that n more rows are staged in all columns, and writes what is
// complete. After an error it refuses.
func (f *file) advance(n int) error {
	f.staged += n
	f.rows += int64(n)
	if f.room() > 0 {
		return f.err
	}
	return f.flush(false)
}

// flush ends the page, and the row group if it is full or last.
func (f *file) flush(last bool) error {
	if f.err != nil {
		return f.err
	}
	size := 0
	for _, c := range f.cols {
		if f.err = c.flushPage(); f.err != nil {
			return f.err
		}
		size += c.size()
	}
	f.grouped += f.staged
	f.staged = 0
	if f.grouped > 0 && (last || f.grouped >= f.maxRows || size >= groupBytes) {
		f.err = f.flushGroup()
	}
	return f.err
}

func (f *file) flushGroup() error {
	g := format.RowGroup{NumRows: int64(f.grouped), FileOffset: f.off, Ordinal: int16(len(f.groups))}
	for _, c := range f.cols {
		d, err := c.flushChunk(f.off, f.write)
		if err != nil {
			return err
		}
		g.Columns = append(g.Columns, d)
		g.TotalByteSize += d.MetaData.TotalUncompressedSize
		g.TotalCompressedSize += d.MetaData.TotalCompressedSize
	}
	f.groups = append(f.groups, g)
	f.grouped = 0
	if len(f.groups) == maxGroups {
		return run.Errorf(run.Misuse, "%s: more than %d row groups; make them larger", f.out.Path(), maxGroups)
	}
	return nil
}

// close writes the footer and gives the file its name.
func (f *file) close() error {
	if err := f.flush(true); err != nil {
		f.out.Abort()
		return err
	}
	meta := format.FileMetaData{
		Version:   2,
		NumRows:   f.rows,
		RowGroups: f.groups,
		CreatedBy: "tierscope version " + run.Version,
		KeyValueMetadata: thrift.Slice[format.KeyValue]{
			{Key: keyMRMVersion, Value: schemaVersion},
			{Key: keySchema, Value: f.schema + " " + schemaVersion},
		},
		Schema: thrift.Slice[format.SchemaElement]{{
			Name: "schema", NumChildren: thrift.New(int32(len(f.cols))),
		}},
	}
	for _, c := range f.cols {
		meta.Schema = append(meta.Schema, c.def().element())
		meta.ColumnOrders = append(meta.ColumnOrders, typeOrdering)
	}
	footer, err := thrift.Marshal(&compact, &meta)
	if err == nil {
		n := binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))
		err = f.write(footer, n, []byte("PAR1"))
	}
	if err != nil {
		f.out.Abort()
		return err
	}
	return f.out.Commit()
}
