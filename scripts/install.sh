#!/bin/bash
# Installs what tests and the demo need and this machine lacks. System packages
# are installed only as root and only when missing; without root one line says
# which are missing, and the tests that need them skip with the reason.
#
# Leaves .cache/missing.txt: the packages that could not be installed, empty if
# none. The parity test reads it to tell a skip with a cause from one without.
set -u
cd "$(dirname "$0")/.."
mkdir -p .cache

# command  Debian package
needs="
chromium   chromium
git        git
ip         iproute2
jq         jq
mount      mount
npm        npm
pip3       python3-pip
ps         procps
python3    python3
setpriv    util-linux
unshare    util-linux
"

# lacking prints the packages whose command is not there, each once.
lacking() {
	while read -r command package; do
		[ -z "$command" ] || command -v "$command" >/dev/null || echo "$package"
	done <<<"$needs"
	command -v python3 >/dev/null && ! python3 -c 'import venv, ensurepip' 2>/dev/null && echo python3-venv
}

mapfile -t missing < <(lacking | sort -u)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "install: ${missing[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	log=.cache/apt.log
	if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
		tail -5 "$log" >&2
	fi
	mapfile -t missing < <(lacking | sort -u)
fi
: >.cache/missing.txt
if [ ${#missing[@]} -gt 0 ]; then
	printf '%s\n' "${missing[@]}" >.cache/missing.txt
	echo "missing; tests that need these skip:" >&2
	echo "  apt-get install ${missing[*]}" >&2
fi

# Go modules, with a second try: a registry may drop a connection.
go mod download >/dev/null || { sleep 5; go mod download >/dev/null; } || exit 1

# Virtual environments of foreign tools, each made by a script of its own that
# pins every version and returns at once when it has nothing to do.
for script in scripts/venv-*.sh; do
	[ -e "$script" ] || continue
	"$script" >&2 </dev/null || echo "install: $script did not finish; tests that need it skip" >&2
done
exit 0
