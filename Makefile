# A machine needs Go, git and make. The rest is installed by scripts/setup.sh.

tool := go tool -modfile=tools/go.mod

.PHONY: help run demo-data build test test-sdk test-browser screenshots soak bench-limits bench-gateway bench-usage check fmt generate clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

run: ## start everything in one command; data stays in .weir
	@scripts/setup.sh
	@$(MAKE) --no-print-directory build
	@exec bin/dev

demo-data: ## fill what `make run` started with three tenants and a month of history
	@$(MAKE) --no-print-directory build
	@bin/dev demo-data

build: ## bin/api, bin/worker, bin/dev
	@go build -o bin/ ./cmd/...

test: ## all tests but the slow ones
	@scripts/setup.sh test
	@scripts/test.sh -timeout 10m ./...

test-sdk: ## the official SDKs against a running stack; minutes to compile at first
	@scripts/setup.sh sdk
	@cd test/sdk && go tool -modfile=../../tools/go.mod gotestsum --format testname -- -parallel 16 -timeout 10m ./...

test-browser: ## the dashboard in a real Chromium
	@scripts/setup.sh browser
	@cd test/browser && go tool -modfile=../../tools/go.mod gotestsum --format testname -- -timeout 15m ./...

screenshots: ## every page at three widths in both themes, into screenshots/
	@scripts/setup.sh browser
	@cd test/browser && go test -tags screenshots -run Screenshots -count 1 -timeout 30m .

soak: ## long random tests
	@scripts/setup.sh test
	@scripts/test.sh -tags soak -run Soak -timeout 60m -count 1 ./...

bench-limits: ## the limits engine against its peers, in one run
	@scripts/setup.sh test
	@go test -run '^$$' -bench . -skip Redis -benchtime 20000x ./internal/limits
	@go test -run '^$$' -bench Redis -benchtime 1x ./internal/limits
	@go test -run '^$$' -bench Reservations -benchtime 1x ./internal/boot

bench-gateway: ## the gateway beside a bare reverse proxy, in one run
	@scripts/setup.sh test
	@go test -run '^$$' -bench Gateway -benchtime 1x ./internal/boot

bench-usage: ## settled calls on their way to the books, and reports of ten million; WEIR_BENCH_EVENTS makes it smaller
	@scripts/setup.sh test
	@go test -run '^$$' -bench Usage -benchtime 1x ./internal/usage

check: ## format, vet, lint, generated code, modules
	@scripts/check.sh

fmt: ## format all code
	@$(tool) golangci-lint fmt
	@$(tool) templ fmt web

generate: ## generated code
	@$(tool) templ generate

clean: ## binaries and the tests' server; never data
	@rm -rf bin /dev/shm/weir-test-$$(id -u) /dev/shm/weir-tmp-$$(id -u)
