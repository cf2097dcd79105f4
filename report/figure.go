package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

// Figures draws the figures for a paper into dir, which exists: for each an SVG
// of a column's width and the CSV that it was drawn from, with the header in the
// first line, raw numbers, empty = missing. It returns the paths written, in a
// fixed order: traffic_by_token, kv_growth, lifetimes.
//
// Nothing is overwritten. A figure without data is an error of class
// [run.Invalid] that names it and says why; then nothing is written at all.
func Figures(dir string, d *Data) ([]string, error) {
	files, empty, err := figureFiles(d)
	if err == nil {
		err = empty
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range files {
		p := filepath.Join(dir, f.name)
		if err := run.WriteFile(p, f.data); err != nil {
			return paths, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// figureFiles draws the figures that have data; empty names the others.
func figureFiles(d *Data) (files []namedFile, empty, err error) {
	if err := d.check(); err != nil {
		return nil, nil, err
	}
	var wrong []error
	for _, draw := range []func(*Data) (string, *analyze.Table, io.WriterTo, error){drawTraffic, drawKV, drawLifetimes} {
		name, t, picture, err := draw(d)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		var svg, table bytes.Buffer
		if _, err := picture.WriteTo(&svg); err != nil {
			return nil, nil, fmt.Errorf("figure %s: %w", name, err)
		}
		if err := writeCSV(&table, t); err != nil {
			return nil, nil, fmt.Errorf("figure %s: %w", name, err)
		}
		files = append(files, namedFile{name + ".svg", portable(svg.Bytes())}, namedFile{name + ".csv", table.Bytes()})
	}
	if len(wrong) > 0 {
		empty = run.Errorf(run.Invalid, "%w", errors.Join(wrong...))
	}
	return files, empty, nil
}

type namedFile struct {
	name string
	data []byte
}

func writeCSV(w io.Writer, t *analyze.Table) error {
	c := csv.NewWriter(w)
	record := make([]string, len(t.Columns))
	for i, col := range t.Columns {
		record[i] = col.Name
	}
	if err := c.Write(record); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for i, v := range row {
			record[i] = raw(v)
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// portable names fonts of the same widths beside Liberation Sans, which not
// every machine has.
func portable(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
}
