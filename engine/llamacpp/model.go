package llamacpp

import (
	"encoding/json"
	"path/filepath"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/trace"
)

// tellModel tells the records what the model file holds and where, so that the
// log explains the file's mapping by itself.
func tellModel(path string, records Records) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	m := trace.Model{Path: path}
	// The kernel names a mapping by the file's real path.
	if m.Path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	for _, t := range f.Tensors {
		m.Tensors = append(m.Tensors, trace.ModelTensor{Name: t.Name, Offset: uint64(t.Offset), Size: uint64(t.Bytes), DType: t.Type.String()})
	}
	b, err := json.Marshal(&m)
	if err != nil {
		return err
	}
	return records.Append(trace.KindModel, b)
}
