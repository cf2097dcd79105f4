#!/bin/bash
# Runs lint and all tests, or with the argument "slow" the slow tier as well.
#
#   .cache/test.json   every event of this run, as `go test -json` prints them
#
# The parity test comes last: it reads that file and fails when a test that the
# parity tables name did not run and pass. Exit 0 only if everything passed.
set -u -o pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache
results=$PWD/.cache/test.json
flags=(-p 2 -timeout 9m)
if [ "${1:-}" = slow ]; then
	results=$PWD/.cache/test-slow.json
	flags=(-p 1 -timeout 50m -tags slow)
fi
status=0
rm -f "$results"
go build -o .cache/summary ./internal/house/summary || exit 1

scripts/lint.sh || status=1
go test -json "${flags[@]}" ./... 2>&1 | .cache/summary -events "$results" || status=1
TIERSCOPE_TEST_RESULTS=$results go test -json -run '^TestParity' ./internal/house 2>&1 |
	.cache/summary -events "$results" -closing || status=1

[ $status = 0 ] || echo "make test: not everything passed, see above" >&2
exit $status
