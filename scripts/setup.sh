#!/bin/sh
# Installs what this machine lacks, where it can; instant when all is there.
#
#   scripts/setup.sh        what "make run" needs: a Postgres server's binaries
#   scripts/setup.sh test   what "make test" needs: also a C compiler, for the
#                           race detector, and a Redis server's binary
#   scripts/setup.sh sdk    what "make test-sdk" needs: also a Redis server's
#                           binary, Node, and OpenAI's SDK for it from npm
#   scripts/setup.sh browser  what "make test-browser" needs: also a Chromium
#
# Debian and Ubuntu, as root or with sudo that asks nothing: apt. Elsewhere the
# launcher itself takes Postgres from an npm package, or says what to do.
set -eu

oldest=15

have_postgres() {
	[ -z "${DATABASE_URL:-}${PG_BIN:-}" ] || return 0
	for server in "$(command -v postgres || true)" /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres \
		/opt/homebrew/opt/postgresql*/bin/postgres /usr/local/opt/postgresql*/bin/postgres \
		/Applications/Postgres.app/Contents/Versions/*/bin/postgres \
		/var/cache/weir/postgres-*/bin/postgres "${XDG_CACHE_HOME:-${HOME:-}/.cache}"/weir/postgres-*/bin/postgres; do
		if [ -x "$server" ]; then
			major=$("$server" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p')
			[ "${major:-0}" -lt "$oldest" ] || return 0
		fi
	done
	return 1
}

have_compiler() {
	command -v "${CC:-$(go env CC)}" >/dev/null 2>&1 && { [ "$(uname)" != Linux ] || [ -e /usr/include/stdlib.h ]; }
}

have_redis() {
	command -v redis-server >/dev/null 2>&1
}

have_chromium() {
	[ -n "${CHROME:-}" ] && return 0
	for name in chromium chromium-browser google-chrome google-chrome-stable; do
		! command -v "$name" >/dev/null 2>&1 || return 0
	done
	[ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] || [ -x /Applications/Chromium.app/Contents/MacOS/Chromium ]
}

have_node() {
	command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1
}

# OpenAI's SDK for Node, in the version that package.json states, and a Node that
# is new enough for it: where the machine's is not, npm brings one beside it.
oldest_node=20
sdk=$(dirname "$0")/../test/sdk/node

have_sdk() {
	stated=$(sed -n 's/.*"openai": "\(.*\)".*/\1/p' "$sdk/package.json")
	there=$(sed -n 's/^ *"version": "\(.*\)".*/\1/p' "$sdk/node_modules/openai/package.json" 2>/dev/null | head -n 1)
	[ "$there" = "$stated" ] && { [ -x "$sdk/node_modules/.bin/node" ] || new_node; }
}

new_node() {
	[ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge "$oldest_node" ]
}

install_sdk() {
	set -- --no-save --no-package-lock --no-audit --no-fund
	new_node || set -- "$@" node@22
	(cd "$sdk" && npm install "$@" </dev/null >&2) || echo "npm could not install OpenAI's SDK: run npm install in test/sdk/node" >&2
}

# as_root prints how to become root: nothing, sudo, or not at all.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		return 0
	fi
	command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null && echo "sudo -n"
}

updated=
apt_install() {
	echo "installing with apt: $*" >&2
	if [ -z "$updated" ]; then
		$sudo apt-get update -qq </dev/null >&2
		updated=yes
	fi
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >&2
}

# The package would set up and start a server of the system's own, which we do
# not use. Where apt's Postgres is too old, npm brings a newer one.
install_postgres() {
	$sudo apt-get update -qq </dev/null >&2
	updated=yes
	major=$(apt-cache show postgresql 2>/dev/null | sed -n 's/^Version: \([0-9]*\).*/\1/p' | head -n 1)
	if [ "${major:-0}" -lt "$oldest" ]; then
		command -v npm >/dev/null 2>&1 || apt_install npm
		return
	fi
	off=/etc/postgresql-common/createcluster.d/weir-setup.conf
	$sudo mkdir -p /etc/postgresql-common/createcluster.d
	echo "create_main_cluster = false" | $sudo tee "$off" >/dev/null
	status=0
	apt_install postgresql || status=$?
	$sudo rm -f "$off"
	return "$status"
}

# Nor its server of the system's own: it is neither started nor enabled.
install_redis() {
	off=/usr/sbin/policy-rc.d
	if [ -e "$off" ]; then
		off=
	else
		printf '#!/bin/sh\nexit 101\n' | $sudo tee "$off" >/dev/null
		$sudo chmod 755 "$off"
	fi
	status=0
	apt_install redis-server || status=$?
	[ -z "$off" ] || $sudo rm -f "$off"
	$sudo systemctl disable redis-server >/dev/null 2>&1 || true
	return "$status"
}

if ! command -v go >/dev/null 2>&1; then
	echo "Go is needed: https://go.dev/doc/install" >&2
	exit 1
fi

wanted=
have_postgres || wanted="postgres"
[ "${1:-}" != test ] || have_compiler || wanted="$wanted compiler"
case "${1:-}" in test | sdk) have_redis || wanted="$wanted redis" ;; esac
[ "${1:-}" != sdk ] || have_node || wanted="$wanted node"
[ "${1:-}" != browser ] || have_chromium || wanted="$wanted chromium"
if [ -n "$wanted" ] && command -v apt-get >/dev/null 2>&1 && sudo=$(as_root); then
	for what in $wanted; do
		case $what in
		postgres) install_postgres || echo "apt could not install Postgres" >&2 ;;
		chromium) apt_install chromium || echo "apt could not install Chromium: install one, or set CHROME to its path" >&2 ;;
		redis) install_redis || echo "apt could not install a Redis server: install one, so that redis-server is in PATH" >&2 ;;
		compiler) apt_install gcc libc6-dev || echo "apt could not install a C compiler" >&2 ;;
		node) apt_install nodejs npm || echo "apt could not install Node: install it, so that node and npm are in PATH" >&2 ;;
		esac
	done
fi
if [ "${1:-}" = sdk ] && have_node; then
	have_sdk || install_sdk
fi
