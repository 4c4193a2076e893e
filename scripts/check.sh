#!/bin/sh
# Everything that can be said about the code without running it.
set -eu
cd "$(dirname "$0")/.."
tool="go tool -modfile=tools/go.mod"

echo "modules"
go mod tidy -diff

echo "generated code"
generated() { git ls-files -co --exclude-standard -- '*_templ.go' | sort | xargs -r cat | cksum; }
before=$(generated)
$tool templ generate -log-level error
if [ "$before" != "$(generated)" ]; then
	echo "the generated code was out of date: it is new now, commit it" >&2
	exit 1
fi

echo "vet"
go vet -tags soak ./...
for module in test/sdk test/browser; do
	(cd "$module" && go vet -tags screenshots ./... && go mod tidy -diff)
done

echo "format"
$tool golangci-lint fmt --diff
$tool templ fmt -fail web

echo "lint"
$tool golangci-lint run
