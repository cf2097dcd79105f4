# Targets of tierscope; `make help` lists them. Everything that is fetched or
# built beside the sources lies in .cache/ and bin/, which git ignores.

SHELL := /bin/bash
GO ?= go
export CGO_ENABLED := 0

TOOLS := .cache/tools
FUZZTIME ?= 20s

.DEFAULT_GOAL := help
.PHONY: help build install lint test test-slow fuzz demo bench-trace docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/tierscope
	$(GO) build -trimpath -o bin/ ./cmd/tierscope

install: ## install what tests and the demo need (system packages only as root)
	@scripts/install.sh

$(TOOLS)/staticcheck: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	$(GO) build -C tools -trimpath -o ../$(TOOLS)/ tool
	@touch $@

lint: $(TOOLS)/staticcheck ## gofmt, vet, staticcheck, errcheck, ineffassign, unconvert, misspell
	@scripts/lint.sh

test: install $(TOOLS)/staticcheck ## install what is missing, then run lint and every fast test
	@scripts/test.sh

test-slow: install ## the slow tier: second real model, soak, large inputs
	@scripts/test.sh slow

fuzz: ## every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

demo: build ## observe a real generation and print the path of its report
	@command -v npm >/dev/null && python3 -m pip --version >/dev/null 2>&1 || scripts/install.sh
	@bin/tierscope demo

bench-trace: ## speed and memory of the memory trace, against its targets
	$(GO) run -trimpath ./bench/trace

docs: build ## write the generated pages of docs/
	bin/tierscope docs > docs/.commands.md.tmp
	mv docs/.commands.md.tmp docs/commands.md
	bin/tierscope schema > docs/.config.schema.json.tmp
	mv docs/.config.schema.json.tmp docs/config.schema.json

clean: ## remove what was built; fetched models and engines stay in the user's cache
	rm -rf bin .cache
