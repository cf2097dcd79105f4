package tensorgraph_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tierscope/tierscope/trace"
)

// FuzzReplay expands logs whose frames are whole and whose contents are not: kind, u16
// length, payload, and so on.
func FuzzReplay(f *testing.F) {
	list := readLog(f, smallLog)
	frame := func(list []logRecord) (b []byte) {
		for _, r := range list {
			if len(r.payload) < 1<<16 {
				b = append(binary.LittleEndian.AppendUint16(append(b, r.kind), uint16(len(r.payload))), r.payload...)
			}
		}
		return b
	}
	f.Add(frame(list))
	for _, kind := range []uint8{trace.KindTables, trace.KindTemplate, trace.KindStep, trace.KindKV, trace.KindMark} {
		f.Add(frame(slices.DeleteFunc(slices.Clone(list), func(r logRecord) bool { return r.kind == kind })))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		var list []logRecord
		for len(b) >= 3 {
			n := min(int(binary.LittleEndian.Uint16(b[1:])), len(b)-3)
			list = append(list, logRecord{b[0] &^ 0x80, b[3 : 3+n]})
			b = b[3+n:]
		}
		expand(t, dir, list)
	})
}
