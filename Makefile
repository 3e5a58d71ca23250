# yoctune: performance tuning of embedded Linux as code.
# `make help` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
BUILD   := build
BIN     := $(BUILD)/bin
# The version of the tag that is checked out; it is found once, by the first rule that needs it.
VERSION  = $(eval VERSION := $$(shell $(GO) run ./internal/cmd/dist -version))$(VERSION)
LDFLAGS  = -ldflags '-X github.com/yoctune/yoctune/internal/version.Version=$(VERSION)'
EXAMPLE := examples/video-analytics
CUE_VERSION = $(shell $(GO) list -m -f '{{.Version}}' cuelang.org/go)

# As the programs are built, so that tests and programs share one compilation of each package.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

# A test fails, instead of skipping, when something that `make setup` installs is missing.
REQUIRE := YOCTUNE_REQUIRE_CUE=1 YOCTUNE_REQUIRE_PACKAGES=1 YOCTUNE_REQUIRE_SPDX=1 YOCTUNE_REQUIRE_LSP=1 YOCTUNE_REQUIRE_TRITON=1 YOCTUNE_REQUIRE_MINISIGN=1 YOCTUNE_REQUIRE_BITBAKE=1 YOCTUNE_REQUIRE_MODELS=1 YOCTUNE_REQUIRE_ETHTOOL=1 YOCTUNE_REQUIRE_SOURCES=1 YOCTUNE_REQUIRE_CUDA=1 \
	YOCTUNE_QEMU=$(CURDIR)/$(BUILD)/cache/qemu YOCTUNE_DOTCONFIG=$(CURDIR)/$(BUILD)/cache/qemu/config

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.PHONY: build
build: ## build the programs in build/bin, and those that layers contain in build/lib/yoctune
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath $(LDFLAGS) -o $(BIN)/yoctune ./cmd/yoctune
	$(GO) build -trimpath $(LDFLAGS) -o $(BIN)/yoctuned ./cmd/yoctuned
	$(GO) build -trimpath $(LDFLAGS) -tags serve -o $(BIN)/yoctuned-serve ./cmd/yoctuned
	$(GO) run ./internal/cmd/dist -runtime $(BUILD)/lib/yoctune -cache $(BUILD)/runtime

.PHONY: demo
demo: build ## build an example layer, apply its plan to a device tree, and run its pipeline
	@scripts/setup.sh models
	@scripts/demo.sh $(EXAMPLE) $(BIN) $(BUILD)/demo $(BUILD)/models

.PHONY: setup
setup: ## install everything the tests need
	@scripts/setup.sh system
	@$(MAKE) --no-print-directory -j3 $(SETUP)

SETUP := setup-python setup-models setup-kernel
.PHONY: $(SETUP)
$(SETUP): setup-%:
	@scripts/setup.sh $*

# Downloads wait while the compiler works, and what only one core can do runs beside the rest. The
# tests of packages run alone: some of them depend on time.
.PHONY: test
test: ## set up, then run every fast test
	@scripts/setup.sh system
	@$(MAKE) --no-print-directory -j5 -O $(SETUP) lint tools
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory -j3 -O fuzz-check cuda-check arm64-check

.PHONY: lint
lint:
	@test -z "$$(gofmt -l bench cmd compiler docs emitters examples golden internal runtime schema tests)" || { gofmt -l .; echo 'gofmt would change these'; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags serve ./cmd/yoctuned
	shellcheck scripts/*.sh tests/*.sh tests/*/*.sh bench/*/*.sh .ci/run

# The packages whose tests take longest go first; more run than there are cores, because many of
# them wait.
LONGEST := ./tests/qemu ./internal/cmd/packages ./tests/series ./runtime/device/watch ./runtime/device/enforce ./runtime/engine/pipeline ./cmd/yoctune ./tests/ci

.PHONY: tools
tools: $(BUILD)/tools/cue $(BUILD)/tools/nfpm $(BUILD)/tools/actionlint

.PHONY: unit
unit: tools
	PATH=$(CURDIR)/$(BUILD)/tools:$$PATH $(REQUIRE) $(GO) test -p $$((2 * $$(nproc))) -timeout 20m $(LONGEST) ./...
	$(GO) test -tags serve ./cmd/yoctuned -run TestScripts/serve

# The parsers of untrusted input on a device: plans, signatures, state, sockets, netlink,
# nodes. `make prove` runs every fuzz target for longer.
FUZZED := internal/flattar internal/signature compiler/programs runtime/serve/inference $(addprefix schema/formats/,evidence examples measurement nvfancontrol nvpmodel sysctld) schema/knob schema/plan $(addprefix runtime/device/,api rootfs doctor enforce journal planfile power watch)

.PHONY: fuzz-check
fuzz-check: ## fuzz the device's parsers, a few hundred inputs each
	scripts/fuzz.sh 200x $(FUZZED)

# The reference for benchmarks, and for what `yoctune init` writes.
$(BUILD)/tools/cue: go.mod
	@mkdir -p $(@D)
	GOBIN=$(CURDIR)/$(@D) $(GO) install cuelang.org/go/cmd/cue@$(CUE_VERSION)
	@touch $@

# Programs of others that packages are made and checked with, each with its version.
$(BUILD)/tools/nfpm $(BUILD)/tools/actionlint $(BUILD)/tools/cosign: scripts/tools.txt
	@mkdir -p $(@D)
	CGO_ENABLED=0 GOBIN=$(CURDIR)/$(@D) $(GO) install $(shell sed -n 's/^$(@F) //p' scripts/tools.txt)
	@touch $@

.PHONY: cuda-check
cuda-check: ## compile and assemble the CUDA sources; needs no GPU
	tests/cuda/compile.sh
	tests/cuda/asan.sh

.PHONY: arm64-check
arm64-check: ## build yoctuned for arm64 and run it under qemu-user
	tests/arm64/run.sh

.PHONY: bench
bench: build $(BUILD)/tools/cue ## run the benchmarks, each beside a reference measured in the same run
	CUE=$(CURDIR)/$(BUILD)/tools/cue $(GO) test ./bench -run '^$$' -bench . -benchtime 7x -v
	$(GO) test ./runtime/engine/core -run '^$$' -bench Submit
	$(GO) test ./runtime/engine/worker -run '^$$' -bench Message
	YOCTUNE_ORT_LIBRARY=$(CURDIR)/$(BUILD)/models/$(shell uname -m)/libonnxruntime.so.1.30.0 $(BIN)/yoctuned bench all

.PHONY: prove
prove: ## run the long checks; docs/prove.md lists the checkouts they take
	scripts/prove.sh

.PHONY: dist
dist: $(BUILD)/tools/nfpm ## make the release files and packages in dist/
	rm -rf dist # SHA256SUMS lists what is in the folder
	$(GO) run ./internal/cmd/dist -o dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(GO) run ./internal/cmd/packages -o dist

.PHONY: sign
sign: ## sign the digests of dist/ with the keys YOCTUNE_RELEASE_KEY (minisign) and COSIGN_KEY
	$(GO) run ./internal/cmd/packages -o dist -sign-only

.PHONY: update
update: ## rewrite every generated and golden file; read the diff
	GO=$(GO) scripts/update.sh

.PHONY: clean
clean: ## remove build/ and dist/
	rm -rf $(BUILD) dist
