#!/bin/bash
# Runs every linter over the whole module, all of them even when one complains.
# Settings: staticcheck.conf, scripts/errcheck.txt. Versions: tools/go.mod.
set -u
cd "$(dirname "$0")/.."
bin=.cache/tools
failed=()

check() { # check NAME COMMAND...: a linter passes when it exits 0 and prints nothing
	local name=$1 out
	shift
	if ! out=$("$@" 2>&1) || [ -n "$out" ]; then
		printf '%s\n' "$out" | sed "s|^$PWD/||" >&2
		failed+=("$name")
	fi
}

# dropped_errors prints calls whose error is dropped; a deferred Close is one of
# what was only read, as what is written is closed where its error can be returned.
dropped_errors() {
	local out
	out=$($bin/errcheck -ignoretests -ignoregenerated -exclude scripts/errcheck.txt ./... 2>&1)
	[ $? -le 1 ] || { printf '%s\n' "$out"; return 1; }
	printf '%s\n' "$out" | grep -vE '\sdefer [A-Za-z0-9_.]+\.Close\(\)$' | grep -v '^$'
	return 0
}

mapfile -t dirs < <(go list -f '{{.Dir}}' ./... 2>/dev/null)
mapfile -t text < <(git ls-files --cached --others --exclude-standard -- \
	'*.go' '*.md' '*.sh' '*.txtar' '*.py' '*.html' Makefile | grep -v '/testdata/.*/' | sort -u)

check gofmt gofmt -l -s "${dirs[@]}"
check vet go vet ./...
check staticcheck $bin/staticcheck -tags slow ./...
check errcheck dropped_errors
check ineffassign $bin/ineffassign ./...
check unconvert $bin/unconvert ./...
check misspell $bin/misspell -error -i analyse,analyser "${text[@]}"

if [ ${#failed[@]} -gt 0 ]; then
	echo "lint: ${failed[*]} failed" >&2
	exit 1
fi
