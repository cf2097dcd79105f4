#!/bin/bash
# Runs every fuzz target for the given time (20s). What it finds is written to
# testdata/fuzz of the package and belongs into the next commit.
set -u
cd "$(dirname "$0")/.."
time=${1:-20s}
status=0 count=0
while IFS=: read -r file name; do
	count=$((count + 1))
	dir=$(dirname "$file")
	echo "fuzz $dir $name" >&2
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 10x "./$dir" </dev/null || status=1
done < <(grep -rHo --include='*_test.go' 'func Fuzz[A-Za-z0-9_]*' --exclude-dir=.cache . | sed 's|^\./||; s|func ||' | sort)
echo "$count fuzz targets, $time each" >&2
exit $status
