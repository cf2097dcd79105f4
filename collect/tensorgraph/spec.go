// Package tensorgraph is the collector that sees every tensor read and write of
// llama.cpp by name, object and bytes: it expands the graph log of an engine
// child (templates, evaluations, contents of index tensors) into objects,
// marks and accesses.
//
// What an operation touches follows from its sources and destination. Views are
// resolved to the bytes they cover, strided as strided; gathers to the rows
// read, cache writes to the cells written, expert products to the experts
// chosen, cache reads to the cells in use, with the padding apart: a kv_cache load
// whose seq_id is null touches cells that hold nothing.
package tensorgraph

import "github.com/tierscope/tierscope/collect"

// Name is the collector's name in traces.
const Name = "tensorgraph"

// Spec describes the collector.
func Spec() collect.Spec {
	return collect.Spec{
		Name: Name,
		Sees: "every tensor read and write of llama.cpp: name, object, address, bytes, load or store, graph evaluation, layer, operation",
		Needs: []string{
			"llama.cpp in a child process of tierscope; no privilege",
			"a jump slot in libllama for starting a graph (amd64, arm64), else the evaluation callback",
		},
		Costs: "about 0.02 ms a graph evaluation: 1 % of decode speed with one engine thread, 2 to 3 % with two threads on two cores; layer times, experts and libraries without a slot use the evaluation callback: 8 % with one thread, 17 % with two",
		CannotSee: []string{
			"scratch memory inside an operation (work buffers, quantised copies of activations)",
			"what caches absorb: these are operand bytes, not memory traffic",
			"exact times inside a graph: start and end are exact, positions in between interpolated",
			"what happens outside graphs: inputs written by the engine, logits read by the sampler, tokenizer, allocator",
		},
	}
}
