// Package observe is the vocabulary of everything that is observed: objects
// (what holds bytes, from when to when), marks (what the engine was doing),
// accesses (who touched what), and the sink that they flow into.
//
// Every source, a live engine as well as an imported file, speaks these words
// and no other. Data travels in batches of columns; strings are dictionary
// codes and become text only at the edges.
package observe

// Classes of objects; the same words are the region types of a trace.
const (
	ClassWeight     = "weight"
	ClassKVCache    = "kv_cache"
	ClassActivation = "activation"
	ClassRuntime    = "runtime"
	ClassUnknown    = "unknown"
)

// Operation types of an access.
const (
	Load  = "load"
	Store = "store"
)

// Phases of a run.
const (
	PhaseWeightLoad = "weight_load"
	PhasePrefill    = "prefill"
	PhaseDecode     = "decode"
	PhaseTeardown   = "teardown"
	// PhaseGeneration is what mrm-trace calls prefill and decode together.
	PhaseGeneration = "generation"
)

// How far the time of an access can be trusted.
const (
	TimeExact        = "exact"        // read from the clock at the access
	TimeInterpolated = "interpolated" // placed between two exact times
	TimeLogical      = "logical"      // an order, no time
)

// NoLayer is the layer of what belongs to no layer.
const NoLayer int32 = -1

// SpaceHost is the address space of the observed process.
const SpaceHost = "host"

// Object is a thing that holds bytes: a tensor, a KV cache of a layer, a
// mapping. Buffers are reused and bases differ between runs, so an access names
// an object, and the address follows from its base.
type Object struct {
	ID         uint32 // unique in a run, from 1
	Generation uint32 // which life of the object, from 0
	Name       string // blk.3.attn_k.weight, cache_v_l3
	Class      string // one of the Class words
	Kind       string // finer word within the class: k, v, input, output, mapping, ...
	Space      string // address space
	Base       uint64 // first address
	Size       uint64 // bytes
	Layer      int32  // layer, or NoLayer
	Born       uint64 // ns; when its bytes were there
	Died       uint64 // ns; 0 = lived to the end of the run
	DType      string // element type in the engine's words, "" if not known
	Buffer     string // engine buffer or mapping that it lies in
}

// Kinds of marks.
const (
	MarkPhase     = "phase"
	MarkToken     = "token"
	MarkRequest   = "request"
	MarkOperation = "operation"
)

// Mark says what the engine was doing from Start to End (ns of the run's
// clock). A mark with End = Start is an instant.
type Mark struct {
	Kind  string
	Name  string
	Index uint64 // number of the token, request or operation
	Seq   int32  // sequence, -1 = none
	Start uint64
	End   uint64
	Value uint64 // meaning by kind and name: bytes, cells, tokens
}

// Sink takes a stream in the order in which the source produces it: an object
// before the first access that names it. Calls are not concurrent. An error ends
// the stream; the source returns it.
type Sink interface {
	Object(Object) error
	Mark(Mark) error
	Accesses(*Batch) error
}

// Tee is a sink that passes everything to each of its sinks in turn.
type Tee []Sink

// Object implements [Sink].
func (t Tee) Object(o Object) error {
	for _, s := range t {
		if err := s.Object(o); err != nil {
			return err
		}
	}
	return nil
}

// Mark implements [Sink].
func (t Tee) Mark(m Mark) error {
	for _, s := range t {
		if err := s.Mark(m); err != nil {
			return err
		}
	}
	return nil
}

// Accesses implements [Sink].
func (t Tee) Accesses(b *Batch) error {
	for _, s := range t {
		if err := s.Accesses(b); err != nil {
			return err
		}
	}
	return nil
}
