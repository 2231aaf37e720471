# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Everything here needs Go, git, make, a C compiler and curl, and installs the
# rest into a cache folder. STRATA_CACHE names that folder; it defaults to the
# folder strata in the user's cache directory.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell hack/version.sh)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOLS := $(shell hack/tools.sh --dir)

# Where envtest finds etcd and kube-apiserver.
export KUBEBUILDER_ASSETS ?= $(patsubst %/tools,%/controlplane,$(TOOLS))

# What make unit tests: all but what is below test/. Of the tools there it tests
# what needs no server; make tools-all has the rest.
UNIT_PACKAGES = $$(hack/packages.sh race; hack/packages.sh plain)
TOOL_PACKAGES = ./test/atrest/... ./test/bench/... ./test/chaos/... ./test/controlplane/... ./test/reads/... ./test/strata/...
# More arguments for go test, for example: make unit TESTFLAGS='-run TestPlan -v'
TESTFLAGS ?=
# How tests are built: what was compiled in one clone serves another one, no symbols
# for a debugger, and vet is the linter's.
GO_TEST = -trimpath -ldflags=-w -vet=off
# What the steps of make test leave to make test-all; test/heavy.txt says why. When
# tests are chosen by name, nothing is left.
LEFT = $(if $(findstring -run,$(TESTFLAGS)),,-skip '$(shell hack/heavy.sh left $(firstword $(subst -, ,$@)))')
# The tests of the controllers wait more than they compute, and many of them run alone.
# So three parts of them go on side by side, each with an API server of its own. The
# patterns hold each name once, and take about as long.
PARTS = $(if $(findstring -run,$(TESTFLAGS)),chosen,A C K)
PART_A = -run '^Test[ABD-J]'
PART_C = -run '^TestC'
PART_K = -run '^(Test[^A-J]|[^T])'
# What gotestsum is told everywhere: where each test's time goes, for the table that
# hack/step.sh ends with.
TIMES := bin/times
SUMMED = $(TOOLS)/gotestsum --jsonfile-timing-events $(TIMES)/$@-$(1).json
# Has client-go end the tests, and the controller in the end-to-end tests, when
# something changes what is in a cache.
DETECT = KUBE_CACHE_MUTATION_DETECTOR=true
# How long make fuzz spends on each fuzz test.
FUZZTIME ?= 30s
# How long make chaos kills and commits, and the seed of its plan; 0 draws one.
CHAOS_TIME ?= 30m
CHAOS_SEED ?= 0
# What programs are built without: docs/adr/0072-programs-have-what-they-need.md.
TAGS := $(shell cat hack/release/tags)
# Flags of make bench, for example: make bench BENCHFLAGS='--systems strata,plain --scenarios chain'
BENCHFLAGS ?=

##@ Everyday

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nCache folder: %s\n' "$(patsubst %/tools,%,$(TOOLS))"

.PHONY: build
build: ## Build the controllers and the kubectl plug-in into bin/
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/strata .
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/strata-hosts ./cmd/strata-hosts
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/kubectl-strata ./cmd/kubectl-strata

.PHONY: demo
demo: ## Run Strata, Flux and a control plane here, with examples/platform; DEMO_EXIT=1 ends it when all is deployed, DEMO_REMOTE=1 adds a second cluster, DEMO_FLEET=1 fills two from a bundle, DEMO_CLUSTER=current takes the cluster of your current context, STRATA_PREBUILT=1 downloads programs in place of building them
	@GOGC=400 go build -ldflags '-X main.version=$(VERSION)' -o bin/demo ./hack/demo
	@DEMO_EXIT='$(DEMO_EXIT)' DEMO_REMOTE='$(DEMO_REMOTE)' DEMO_FLEET='$(DEMO_FLEET)' DEMO_CLUSTER='$(DEMO_CLUSTER)' exec bin/demo

.PHONY: generate
generate: ## Write deepcopy functions, CRDs, roles and docs/api.md again
	hack/generate.sh

.PHONY: fmt
fmt: tool-golangci-lint ## Format the Go files
	$(TOOLS)/golangci-lint fmt ./...

.PHONY: clean
clean: ## Remove what was built in the tree; the cache folder stays
	rm -rf bin dist

##@ Tests

.PHONY: test
test: ## All checks that a change must pass, with the time of each
	@MAKE='$(MAKE)' TIMES='$(TIMES)' hack/step.sh tools lint verify controlplane unit simulate e2e
	@echo "left to make test-all: the $$(grep -vc '^#\|^$$' test/heavy.txt) tests of test/heavy.txt"

# The order changes with each commit, so that it is not always the same that is left
# out where the time is short.
.PHONY: test-all
test-all: ## What make test leaves out, some of it for a short time only
	@MAKE='$(MAKE)' TIMES='$(TIMES)' ROTATE=$$(git rev-list --count HEAD 2>/dev/null || echo 0) \
	  hack/step.sh tools controlplane -- e2e-heavy e2e-hosts unit-heavy laws vulncheck fuzz-brief simulate-heavy mutants tools-all chaos-brief

.PHONY: nightly
nightly: ## Everything, at length: all tests with all detectors, fuzz tests, 10000 simulated runs, half an hour of chaos
	@MAKE='$(MAKE)' TIMES='$(TIMES)' hack/step.sh tools lint verify controlplane vulncheck unit-all laws e2e-all simulate-all mutants tools-all matrix release-twice demo-cold fuzz chaos

.PHONY: matrix
matrix: controlplane tool-gotestsum ## The short end-to-end path on every supported version of Kubernetes and Flux, with the table of docs/support.md
	hack/matrix.sh

.PHONY: tree
tree: controlplane ## A tree of three clusters, made, filled, moved, broken and deleted, with what is done; TREE_OUTAGE=2m is how long one is away
	hack/tree.sh '$(TREE_OUTAGE)'

.PHONY: demo-cold
demo-cold: ## As demo, on a machine that has neither servers nor anything compiled
	@cold=$$(mktemp -d) && trap 'rm -rf "$$cold"' EXIT && \
	  env -u KUBEBUILDER_ASSETS GOCACHE="$$cold/go" STRATA_CACHE="$$cold/strata" $(MAKE) --no-print-directory demo DEMO_EXIT=1

.PHONY: lint
lint: tool-golangci-lint tool-actionlint ## Lint, with the import rules of the rooms, and the workflows
	$(TOOLS)/golangci-lint run ./...
	$(TOOLS)/actionlint

.PHONY: verify
verify: ## Fail when a generated file is not current
	hack/verify.sh

.PHONY: vulncheck
vulncheck: tool-govulncheck ## Look for known weaknesses in what is used, where their database can be reached
	hack/vulncheck.sh $(TOOLS)/govulncheck

.PHONY: unit
unit: tool-gotestsum tool-promtool ## Unit, property, API and chart tests, with the race detector where things go on side by side
	@mkdir -p $(TIMES)
	$(DETECT) $(call SUMMED,race) --format standard-quiet --format-hide-empty-pkg -- -race $(GO_TEST) -timeout 30m $(LEFT) $(TESTFLAGS) $$(hack/packages.sh race)
	@$(MAKE) --no-print-directory -k -j4 -Otarget $(PARTS:%=unit-controllers-%) unit-plain
	$(call SUMMED,tools) --format standard-quiet --format-hide-empty-pkg -- $(GO_TEST) -short -timeout 5m $(TESTFLAGS) $(TOOL_PACKAGES)

.PHONY: unit-plain
unit-plain: tool-gotestsum
	$(DETECT) $(call SUMMED,all) --format standard-quiet --format-hide-empty-pkg -- $(GO_TEST) -p 2 -timeout 15m $(LEFT) $(TESTFLAGS) $$(hack/packages.sh plain | grep -v '/controllers$$')

unit-controllers-%: tool-gotestsum
	$(DETECT) $(call SUMMED,part) --format standard-quiet --format-hide-empty-pkg -- $(GO_TEST) -timeout 15m -parallel 3 $(LEFT) $(PART_$*) $(TESTFLAGS) ./controllers

.PHONY: unit-heavy
unit-heavy: tool-gotestsum ## The unit tests of test/heavy.txt, and the controllers and the plug-in with the race detector
	@mkdir -p $(TIMES)
	$(DETECT) STRATA_TEST_ALL=1 $(call SUMMED,heavy) --format testname -- -race $(GO_TEST) -timeout 45m -run "$$(hack/heavy.sh all unit)" $(TESTFLAGS) $$(hack/heavy.sh packages unit)
	$(DETECT) $(call SUMMED,raced) --format standard-quiet -- -race $(GO_TEST) -timeout 45m -parallel 6 -skip "$$(hack/heavy.sh all unit)" $(TESTFLAGS) ./controllers ./cmd/kubectl-strata

.PHONY: laws
laws: ## The laws of what is done to hosts, in every situation of up to five of them
	go test $(GO_TEST) -timeout 30m -v -run 'TestEveryCase' ./internal/hosts

.PHONY: unit-all
unit-all: tool-gotestsum tool-promtool ## All unit tests at their full length, all with the race detector
	@mkdir -p $(TIMES)
	$(DETECT) STRATA_TEST_ALL=1 $(call SUMMED,all) --format standard-quiet --format-hide-empty-pkg -- -race $(GO_TEST) -count=1 -timeout 45m $(TESTFLAGS) $(UNIT_PACKAGES)

# The servers and the controller take memory for time. The controllers under test have
# the race detector where STRATA_RACE is 1; the tests themselves need none.
E2E = GOGC=400 $(call SUMMED,$(1)) --format testname -- $(GO_TEST) -p 1 -parallel $(E2E_PARALLEL)
# Those of test/e2e that run the plug-in are a part of their own, which a change of the plug-in
# alone runs again.
E2E_PACKAGES = ./test/e2e ./test/hostile ./test/page ./test/release ./test/lab
# How many end-to-end tests go on side by side: most of their time they wait.
E2E_PARALLEL ?= 10

.PHONY: e2e
e2e: tool-gotestsum tool-cosign tool-krew ## End-to-end tests on a real API server with the real Flux controllers, and attacks on the chart's lockdown, and a release that is installed, upgraded and taken back
	@mkdir -p $(TIMES)
ifneq (,$(findstring -run,$(TESTFLAGS)))
	$(call E2E,chosen) -timeout 35m $(TESTFLAGS) $(E2E_PACKAGES)
else
	@plugin=$$(go run ./hack/reaching test/e2e builtPlugin) code=0; set -x; \
	  $(call E2E,layers) -timeout 35m -skip "$$(hack/heavy.sh left e2e)|$$plugin" $(TESTFLAGS) ./test/e2e || code=1; \
	  $(call E2E,plugin) -timeout 35m -run "$$plugin" $(LEFT) $(TESTFLAGS) ./test/e2e || code=1; \
	  $(call E2E,others) -timeout 35m $(LEFT) $(TESTFLAGS) $(filter-out ./test/e2e,$(E2E_PACKAGES)) || code=1; \
	  exit $$code
endif

.PHONY: e2e-heavy
e2e-heavy: tool-gotestsum ## The end-to-end tests of test/heavy.txt
	@mkdir -p $(TIMES)
	STRATA_RACE=1 STRATA_TEST_ALL=1 $(call E2E,heavy) -timeout 35m -run "$$(hack/heavy.sh all e2e)" $(TESTFLAGS) $$(hack/heavy.sh packages e2e)

.PHONY: e2e-hosts
e2e-hosts: tool-gotestsum controlplane-host ## The tests of test/heavy.txt on hosts as real as can be, and on two versions of Kubernetes, whose programs are built first
	@mkdir -p $(TIMES)
	STRATA_TEST_ALL=1 $(call E2E,hosts) -timeout 35m -run "$$(hack/heavy.sh all hosts)" $(TESTFLAGS) $$(hack/heavy.sh packages hosts)

.PHONY: e2e-all
e2e-all: tool-gotestsum controlplane-host ## All end-to-end tests, with all detectors
	@mkdir -p $(TIMES)
	$(DETECT) STRATA_RACE=1 STRATA_TEST_ALL=1 $(call E2E,all) -count=1 -race -timeout 90m $(TESTFLAGS) $(E2E_PACKAGES)

.PHONY: simulate
simulate: ## The rules against a simulated cluster, 1000 runs; STRATA_SEED=N shows one run, STRATA_RUNS=N makes N
	GOGC=400 go test $(GO_TEST) -timeout 20m -v $(TESTFLAGS) ./test/simulation

# One goroutine goes on at a time, so the race detector has little to find and
# makes it ten times slower: a few runs have it.
.PHONY: simulate-heavy
simulate-heavy: ## As simulate, the next 4000 runs, and 30 with the race detector
	STRATA_RUNS=30 go test -race $(GO_TEST) -timeout 20m $(TESTFLAGS) -run '^TestSimulation$$' ./test/simulation
	GOGC=400 STRATA_SEED=1001 STRATA_RUNS=4000 go test $(GO_TEST) -timeout 30m -v $(TESTFLAGS) -run '^TestSimulation$$' ./test/simulation

.PHONY: simulate-all
simulate-all: ## As simulate, 10000 runs
	GOGC=400 STRATA_TEST_ALL=1 go test $(GO_TEST) -count=1 -timeout 30m -v $(TESTFLAGS) ./test/simulation

.PHONY: mutants
mutants: ## Break the rules on purpose by each patch of test/mutants, and have the simulation find it
	hack/mutants.sh

.PHONY: tools-all
tools-all: tool-gotestsum controlplane ## The tests of the benchmark, of the storm and of the servers, with servers
	@mkdir -p $(TIMES)
	STRATA_TEST_ALL=1 $(call SUMMED,all) --format testname -- -race $(GO_TEST) -count=1 -p 1 -timeout 30m $(TESTFLAGS) $(TOOL_PACKAGES)

.PHONY: fuzz
fuzz: ## Every fuzz test for FUZZTIME (30s)
	hack/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-brief
fuzz-brief: ## As fuzz, for five seconds each
	hack/fuzz.sh 5s

.PHONY: chaos
chaos: controlplane ## Kill Strata, Flux, kube-apiserver and etcd for CHAOS_TIME (30m) while commits go on; CHAOS_SEED=N again
	@go build -o bin/chaos ./test/chaos
	@exec bin/chaos --time='$(CHAOS_TIME)' --seed='$(CHAOS_SEED)'

.PHONY: chaos-brief
chaos-brief: ## As chaos, for three minutes
	@$(MAKE) --no-print-directory chaos CHAOS_TIME=3m

.PHONY: bench
bench: controlplane ## Measure Strata beside others, with a table and bin/bench.json; BENCHFLAGS='--help' lists the flags
	@go build -o bin/bench ./test/bench
	@exec bin/bench --out bin/bench.json $(BENCHFLAGS)

##@ Releases

# What make release takes beside VERSION: where image and chart belong (HOST/PATH), 1 to
# push them there, a private key of cosign, whose password is in COSIGN_PASSWORD, and more
# flags of hack/release.
REGISTRY ?=
PUSH ?=
KEY ?=
RELEASEFLAGS ?=

.PHONY: release
release: tool-cosign ## Make a release of this commit into dist/; VERSION=v0.2.0 REGISTRY=HOST/PATH PUSH=1 KEY=cosign.key
	go run -trimpath ./hack/release --version '$(VERSION)' --registry '$(REGISTRY)' $(if $(PUSH),--push) \
	  $(if $(KEY),--key '$(KEY)') --cosign $(TOOLS)/cosign $(RELEASEFLAGS)

.PHONY: release-twice
release-twice: ## Make a release in two folders, as two users with nothing in their caches, and compare all bytes
	hack/release-twice.sh

##@ What they need

.PHONY: tools
tools: ## Build the linter, the generators and the test runner into the cache folder
	@hack/tools.sh
	@echo "tools are current in $(TOOLS)"

.PHONY: controlplane
controlplane: ## Build etcd, Kubernetes, kwok and Flux into the cache folder
	go run ./hack/controlplane

.PHONY: controlplane-host
controlplane-host: ## Build what runs on hosts, and the version of Kubernetes before, into the cache folder, for the tests of hosts
	go run ./hack/controlplane --host
	go run ./hack/controlplane --older --only kube-apiserver,kube-controller-manager,kube-scheduler,kubeadm

tool-%:
	@hack/tools.sh $*
