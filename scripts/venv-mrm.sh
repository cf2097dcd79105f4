#!/bin/bash
# Makes a virtual environment with mrm-trace 0.1.23, the program whose tables
# ours are compared with, and prints its interpreter. Every version is pinned.
# Returns at once if it is there already; several may run at a time.
set -eu

pins="mrm-trace==0.1.23 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.0 pydantic==2.14.3 pydantic_core==2.50.4
annotated-doc==0.0.7 annotated-types==0.8.0 markdown-it-py==4.3.0 mdurl==0.1.2 psutil==7.2.2 Pygments==2.21.0
python-dateutil==4.0.0 PyYAML==6.0.3 rich==15.0.0 shellingham==1.5.4 typer==0.29.2 typing_extensions==4.16.0
typing-inspection==0.4.5 tzdata==2026.6"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tierscope
venv=$cache/venv-mrm
mkdir -p "$cache"
exec 9>"$cache/venv-mrm.lock"
flock 9
# The list is written last: without it the environment is not finished.
if [ "$(cat "$venv/pins.txt" 2>/dev/null)" != "$pins" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	# shellcheck disable=SC2086
	"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps $pins >&2 ||
		{ sleep 5; "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps $pins >&2; }
	"$venv/bin/python" -c 'import mrm_trace.analyser' >&2
	echo "$pins" >"$venv/pins.txt"
fi
echo "$venv/bin/python"
