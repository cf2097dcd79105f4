#!/bin/bash
# Lays out what the commands of the manual name, in the working directory. HOUSE is
# the source tree; tierscope is on the PATH.
set -eu
ln -s "$HOUSE/docs" docs
cp "$HOUSE/docs/examples/first-light.yaml" .
mkdir models
ln -s "$(tierscope model fetch smollm2)" models/
ln -s models/*.gguf model.gguf

# A sweep that takes seconds.
tierscope model synth --out tiny.gguf >/dev/null
cat >quick.yaml <<'Y'
experiment: {name: quick}
models: [{id: tiny, engine: llamacpp, path: tiny.gguf}]
sweep: {context_lengths: [64], output_tokens: [8], warmup_runs: 1}
tierscope: {seed: 7, prompts: [{text: Where do the bytes live?}, {text: And for how long?, keep: true}]}
Y

# What a user of mrm-trace brings along.
fixtures="$HOUSE/run/testdata/mrm/run_fx"
cp "$HOUSE/region/testdata/label/mixed.json" case.json
cp "$HOUSE/experiment/testdata/mrm/minimal.yaml" experiment.yaml
cp "$HOUSE/analyze/mrm/testdata/analyse/all_unknown/trace.parquet" raw.parquet
echo '[{"addr_start": 4096, "addr_end": 1048576, "region_type": "kv_cache"}]' >kv_ranges.json
mkdir -p results/box-1/tiny-q4 results/tiny
cp -r "$fixtures" results/box-1/tiny-q4/

ln -s raw.parquet trace.parquet

# A finished run of our own, and two that were cut off before they were sealed.
tierscope run --model tiny.gguf --context 64 --tokens 4 --threads 1 --prompt Hello --no-calibration --out made >/dev/null 2>&1
mkdir results/model
cp -r made/tiny/* results/tiny/run-1
rm made/tiny/*/manifest.json
cp -r made/tiny/* results/model/run
cp -r made/tiny/* results/model/cut
