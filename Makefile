# yoctune: performance tuning of embedded Linux as code.
#   make demo    set-up, then the main job on an example
#   make test    set-up, then every fast test
#   make bench   benchmarks, each beside a reference measured in the same run
#   make prove   long checks and checks against outside material
#   make dist    release files of the device runtime

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
BUILD   := build
BIN     := $(BUILD)/bin
EXAMPLE := examples/video-analytics
CUE_VERSION = $(shell $(GO) list -m -f '{{.Version}}' cuelang.org/go)

# A test that misses what `make setup` installs fails instead of skipping.
REQUIRE := YOCTUNE_REQUIRE_CUE=1 YOCTUNE_REQUIRE_SPDX=1 YOCTUNE_REQUIRE_MINISIGN=1 YOCTUNE_REQUIRE_BITBAKE=1 YOCTUNE_REQUIRE_MODELS=1 YOCTUNE_REQUIRE_ETHTOOL=1 YOCTUNE_REQUIRE_SOURCES=1 YOCTUNE_REQUIRE_CUDA=1 \
	YOCTUNE_QEMU=$(CURDIR)/$(BUILD)/cache/qemu YOCTUNE_DOTCONFIG=$(CURDIR)/$(BUILD)/cache/qemu/config

.PHONY: help
help: ## this text
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.PHONY: build
build: ## both programs, in build/bin
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/yoctune ./cmd/yoctune
	$(GO) build -trimpath -o $(BIN)/yoctuned ./cmd/yoctuned
	$(GO) build -trimpath -tags serve -o $(BIN)/yoctuned-serve ./cmd/yoctuned

.PHONY: demo
demo: build ## builds an example layer, applies its plan to a device tree
	@scripts/demo.sh $(EXAMPLE) $(BIN) $(BUILD)/demo

.PHONY: setup
setup: ## everything the tests need
	@scripts/setup.sh system python models kernel

.PHONY: test
test: setup lint unit fuzz-check cuda-check arm64-check ## every fast test

.PHONY: lint
lint:
	@test -z "$$(gofmt -l bench cmd compiler docs emitters examples golden internal runtime schema tests)" || { gofmt -l .; echo 'gofmt would change these'; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags serve ./cmd/yoctuned
	shellcheck scripts/*.sh tests/*.sh tests/*/*.sh bench/*/*.sh .ci/run

.PHONY: unit
unit: $(BUILD)/tools/cue
	PATH=$(CURDIR)/$(BUILD)/tools:$$PATH $(REQUIRE) $(GO) test -timeout 20m ./...
	$(GO) test -tags serve ./cmd/yoctuned -run TestScripts/serve

# What a device reads that others wrote: plans, signatures, state, sockets, netlink,
# nodes. `make prove` runs every target of the tree, and longer.
FUZZED := internal/signature schema/knob schema/plan $(addprefix runtime/device/,api rootfs doctor enforce journal planfile power watch)

.PHONY: fuzz-check
fuzz-check: ## the parsers of the device, each fed a few hundred inputs
	scripts/fuzz.sh 200x $(FUZZED)

# The reference of benchmarks, and the judge of what `yoctune init` writes.
$(BUILD)/tools/cue: go.mod
	@mkdir -p $(@D)
	GOBIN=$(CURDIR)/$(@D) $(GO) install cuelang.org/go/cmd/cue@$(CUE_VERSION)
	@touch $@

.PHONY: cuda-check
cuda-check: ## compiles and assembles the CUDA sources, no GPU needed
	tests/cuda/compile.sh
	tests/cuda/asan.sh

.PHONY: arm64-check
arm64-check: ## the device program for arm64, run under qemu-user
	tests/arm64/run.sh

.PHONY: bench
bench: build $(BUILD)/tools/cue ## benchmarks, each beside its reference
	CUE=$(CURDIR)/$(BUILD)/tools/cue $(GO) test ./bench -run '^$$' -bench . -benchtime 7x -v
	$(GO) test ./runtime/engine/core -run '^$$' -bench Submit
	$(GO) test ./runtime/engine/worker -run '^$$' -bench Message
	YOCTUNE_ORT_LIBRARY=$(CURDIR)/$(BUILD)/models/$(shell uname -m)/libonnxruntime.so.1.30.0 $(BIN)/yoctuned bench all

.PHONY: prove
prove: ## long checks; see docs/prove.md for the checkouts it takes
	scripts/prove.sh

.PHONY: dist
dist: ## release files of the device runtime, in dist/
	$(GO) run ./internal/cmd/dist -o dist

.PHONY: golden
golden: ## rewrites golden/; read the diff before you commit it
	$(GO) test ./golden -update
	git diff --stat -- golden

.PHONY: clean
clean:
	rm -rf $(BUILD) dist
