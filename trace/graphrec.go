package trace

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/tierscope/tierscope/observe"
)

// Engine describes the engine and the job that a graph log is of.
type Engine struct {
	Name       string `json:"name"`    // llama.cpp
	Version    string `json:"version"` // as the library says
	Library    string `json:"library"` // file name of libllama
	Backend    string `json:"backend"` // file name of the CPU backend
	Via        string `json:"via"`     // slot, slot+callback, callback
	PID        uint32 `json:"pid"`
	Thread     uint32 `json:"thread"`
	Threads    int    `json:"threads"`
	Pool       bool   `json:"pool"` // one lasting thread pool is attached
	Model      string `json:"model"`
	Layers     int    `json:"layers"`
	Embedding  int    `json:"embedding"`
	Vocabulary int    `json:"vocabulary"`
	ModelBytes uint64 `json:"model_bytes"`
	Context    int    `json:"context"`
	Sequences  int    `json:"sequences"`
	FlashAttn  string `json:"flash_attn"`
	TypeK      string `json:"type_k"`
	TypeV      string `json:"type_v"`
}

// Model is the file that the engine maps.
type Model struct {
	Path    string        `json:"path"` // with links resolved, as /proc/PID/maps shows it
	Tensors []ModelTensor `json:"tensors"`
}

// ModelTensor is a tensor of the model file.
type ModelTensor struct {
	Name   string `json:"name"`
	Offset uint64 `json:"offset"` // in the file
	Size   uint64 `json:"size"`
	DType  string `json:"dtype"`
}

// Step is one call of the engine's decode: which graph evaluations follow up to
// the next step belong to it.
type Step struct {
	Prefill bool
	Request uint32 // request of the first sequence
	Token   uint32 // tokens generated before this step, in that request
	Context uint32 // tokens in that sequence's context before this step
	Tokens  uint32 // tokens in the batch
	Seq     uint32 // sequence of the first token
	Start   uint64 // ns
}

// Append encodes the step behind b as varints in the order of the fields.
func (s *Step) Append(b []byte) []byte {
	p := uint64(0)
	if s.Prefill {
		p = 1
	}
	for _, v := range []uint64{p, uint64(s.Request), uint64(s.Token), uint64(s.Context), uint64(s.Tokens), uint64(s.Seq), s.Start} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

var errRecord = errors.New("graph log record is damaged")

func uvarints(b []byte, n int) ([]uint64, []byte, error) {
	v := make([]uint64, n)
	for i := range v {
		x, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, nil, errRecord
		}
		v[i], b = x, b[k:]
	}
	return v, b, nil
}

// DecodeStep reads what Append wrote.
func DecodeStep(b []byte) (Step, error) {
	v, rest, err := uvarints(b, 7)
	if err != nil || len(rest) != 0 || v[0] > 1 || slices.Max(v[1:6]) > math.MaxUint32 {
		return Step{}, errRecord
	}
	return Step{v[0] == 1, uint32(v[1]), uint32(v[2]), uint32(v[3]), uint32(v[4]), uint32(v[5]), v[6]}, nil
}

// AppendMark encodes a mark behind b: kind and name with their lengths, then varints of
// index, sequence + 1, start, duration, value.
func AppendMark(b []byte, m observe.Mark) []byte {
	for _, s := range []string{m.Kind, m.Name} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, v := range []uint64{m.Index, uint64(m.Seq + 1), m.Start, m.End - m.Start, m.Value} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// DecodeMark reads what AppendMark wrote.
func DecodeMark(b []byte) (observe.Mark, error) {
	var m observe.Mark
	for _, s := range []*string{&m.Kind, &m.Name} {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return m, errRecord
		}
		*s, b = string(b[k:k+int(n)]), b[k+int(n):]
	}
	v, rest, err := uvarints(b, 5)
	if err != nil || len(rest) != 0 || v[1] > math.MaxInt32 || v[3] > math.MaxUint64-v[2] {
		return m, errRecord
	}
	m.Index, m.Seq, m.Start, m.Value = v[0], int32(v[1])-1, v[2], v[4]
	m.End = m.Start + v[3]
	return m, nil
}

// Operations on the KV cache that free or move cells.
const (
	KVRemove = "seq_rm"  // cells of a sequence with positions in [P0, P1)
	KVShift  = "seq_add" // positions in [P0, P1) move by Delta
	KVClear  = "clear"   // all cells
)

// KVOp is an operation on the KV cache outside any graph.
type KVOp struct {
	Op    string `json:"op"`
	Seq   int32  `json:"seq"` // -1 = every sequence
	P0    int32  `json:"p0"`  // -1 = from the beginning
	P1    int32  `json:"p1"`  // -1 = to the end
	Delta int32  `json:"delta,omitempty"`
	At    uint64 `json:"at"` // ns
}

// Output is a finished request.
type Output struct {
	Request      uint32 `json:"request"`
	Seq          int32  `json:"seq"`
	Prompt       string `json:"prompt"`
	Text         string `json:"text"`
	PromptTokens int    `json:"prompt_tokens"`
	ReusedTokens int    `json:"reused_tokens"` // found in the KV cache already
	OutputTokens int    `json:"output_tokens"`
	Start        uint64 `json:"start"`
	FirstToken   uint64 `json:"first_token"`
	End          uint64 `json:"end"`
	Stopped      string `json:"stopped"` // end_of_text, tokens, context, interrupted
	Category     string `json:"category,omitempty"`
}

// Trial is one block of the calibration: the same tokens decoded with the
// probe on or off; or why there are no more.
type Trial struct {
	Error  string `json:"error,omitempty"`
	Pair   uint32 `json:"pair"`
	On     bool   `json:"on"`
	Tokens uint32 `json:"tokens"`
	NS     uint64 `json:"ns"`
	// Evals graph evaluations were in it, and the hook's own code took Hook ns of
	// them; both 0 where it did not say.
	Evals uint64 `json:"evals,omitempty"`
	Hook  uint64 `json:"hook_ns,omitempty"`
}

// End is the last record of a log that ended in order.
type End struct {
	Class   int    `json:"class"` // exit code of run.Class; 0 = done
	Error   string `json:"error,omitempty"`
	Lost    uint64 `json:"lost"`    // records that found no room in the ring
	Stalled uint64 `json:"stalled"` // ns the engine waited for room
	Rusage  Rusage `json:"rusage"`
}

// Rusage is what the engine process used.
type Rusage struct {
	UserNS     int64 `json:"user_ns"`
	SystemNS   int64 `json:"system_ns"`
	MaxRSS     int64 `json:"max_rss_bytes"`
	MinorFault int64 `json:"minor_faults"`
	MajorFault int64 `json:"major_faults"`
}
