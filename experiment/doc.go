// Package experiment reads an experiment file, expands it into a plan and wires
// the run of that plan.
//
// # The experiment file
//
// One YAML document, UTF-8, at most 4 MiB, read with the scalars of YAML 1.1
// (yes and no are booleans, 1e3 is a string). Every key of mrm-trace's file is
// read, with its defaults and its coercions: "2" and 1.0 are integers, "yes"
// and 0 are booleans; 1.5 for an integer, a scalar for a list and a number for
// a string are errors. Relative paths are relative to the working directory.
// docs/config.schema.json describes every key; [Schema] makes it.
//
//	section      what it says                           honoured
//	experiment   name, authors, version                 all
//	models       list of models: id, engine, path       all (engine vllm: planned, not run)
//	sweep        lists whose product is the plan        all
//	prompts      source file and categories             all
//	collector    collectors of mrm-trace                none, primary tensorgraph is ours
//	telemetry    samplers of mrm-trace                  none
//	labeller     rules_file, unknown_policy             unknown_policy
//	analyser     metrics, bins, resolution, groups      all
//	output       base_dir, compression, formats         base_dir, compression
//	tierscope    our own settings, [Settings]           all, in [Strict] only
//
// [Strict] reports every unknown or repeated key and every value out of range
// as an error with its place, and warns of a key that is read but has no effect
// yet. [Compat] is silent where mrm-trace is; beyond what mrm-trace refuses, it
// refuses integers beyond 64 bits, numbers that are not finite, more than [MaxRuns] runs,
// and nesting or sizes that no experiment has.
//
// # The prompt file
//
// A name ending in .json holds a list, .jsonl one value a line, each a string or
// an object with "prompt" (or "text") and "category"; any other name holds
// one prompt a line. Empty lines are skipped.
//
// # The hash of a plan
//
// [Plan.Hash] is the SHA-256, in lower-case hexadecimal, of the plan's canonical
// JSON ([Plan.Canonical]): UTF-8, object keys in byte order, no white space,
// numbers as Go's encoding/json prints them. It covers what decides what runs:
// models, sweep, prompts, analysis, tierscope's settings and the runs in order. The time
// stamp, the output directory, descriptions and keys without effect are not in it.
package experiment
