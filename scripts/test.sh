#!/bin/sh
# Runs go test with what the tests here need: scripts/test.sh [flags] packages
set -eu
cd "$(dirname "$0")/.."

race=-race
if ! command -v "${CC:-$(go env CC)}" >/dev/null 2>&1; then
	echo "no C compiler is here: the tests run without the race detector" >&2
	race=
fi

# A program with the race detector otherwise sleeps for a second at its end, and
# tests start hundreds.
export GORACE="atexit_sleep_ms=0 ${GORACE-}"

# Tests that sync files are many times faster in memory, where there is room
# and where programs may be run. The name stays the same from run to run, so
# that results are still cached; what killed tests left goes after a day. Go's
# own temporary files stay where they were.
memory=/dev/shm/weir-tmp-$(id -u)
if [ -d /dev/shm ] && [ "$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')" -gt 4194304 ] &&
	mkdir -p "$memory" && [ -O "$memory" ] && chmod 755 "$memory" &&
	printf '#!/bin/sh\n' >"$memory/probe" && chmod 755 "$memory/probe" && "$memory/probe" 2>/dev/null; then
	find "$memory" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}" TMPDIR="$memory"
fi

exec go tool -modfile=tools/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- $race "$@"
