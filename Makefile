# Ingot. "make help" lists what there is to make.

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE    ?= ingot:$(VERSION)
FUZZTIME ?= 60s
WALK ?= 200
HISTORIES ?= 10000
KILLPOINTS ?= all
# When long proofs leave out what they can, in seconds since 1970; empty = never.
PROOFS_UNTIL ?=
IN_TIME = [ -z "$(PROOFS_UNTIL)" ] || [ "$$(date +%s)" -lt "$(PROOFS_UNTIL)" ] || { echo "LEFT OUT, AND NOT PROVED, for it is later than PROOFS_UNTIL: a part of $@" | tee -a "$${LEFT_OUT:-/dev/null}"; exit 0; };

# One set of flags, so that what one target compiled no other compiles again.
export CGO_ENABLED = 0
export GOFLAGS += -trimpath

GOLANGCI_LINT         := $(shell go env GOPATH)/bin/golangci-lint
GOLANGCI_LINT_VERSION := v2.15.0

DASHBOARD_LINTER_VERSION := v0.0.0-20231114210226-c458893a5731

# Everything but the features, which build the program themselves.
UNITS = $(shell go list ./... | grep -v '^ingot/features')

# What of the features takes minutes, not tens of them.
FEATURES_FAST = $(shell go list ./features/... | grep -v -e '/features/life$$' -e '/features/lab$$')

.NOTPARALLEL:
.PHONY: help setup build vet units race features features-redis machines test test-long test-e2e lint fmt bench bench-scale fuzz image probe-image install dist test-packages demo monitoring lint-dashboards clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what tests need: git, redis-server, gcc (Debian, Ubuntu)
	@.ci/setup

build: ## Build ingot and metalprobe into bin/
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/ingot ./cmd/metalprobe

# timed runs a command and prints how long it took.
timed = @echo '$(1)'; began=$$(date +%s); $(1) && echo "==> $@: $$(($$(date +%s) - began)) s"

vet: ## Run go vet
	$(call timed,go vet ./...)

units: setup ## Run the unit tests, but those that boot machines
	$(call timed,TMPDIR=$(TESTS_TMP) go test -short -vet=off -ldflags='-s -w' -p 4 -timeout 30m $(UNITS))

# What starts no goroutine has no data races of its own; the tests of examples/monitoring
# look at other processes, of which the detector sees nothing.
NO_RACES = ingot/model% ingot/examples% ingot/reconcile/plan ingot/reconcile/report ingot/reconcile/preview ingot/reconcile/truth ingot/cmd/ingot/cluster

# What takes the detector longest and has no goroutines that other tests do not have, or is about memory.
NO_RACES_IN = ^Test(DescentIsFoundFarBack|WhatHidesAllIsNamedOnce|EachLookComesToTheSameAsFromScratch|ContainerLayerIsUnpackedWithinBounds|FileThatIsNotWholeOrHasATailIsRefused|ImageOfOtherTools|APowerCutLeavesNothingOrAll|UnusedFileLeavesMemory|MoreBlocksThanCanBeCounted|WhatAPreviewDoesNotAnnounceIsNotDone|NoErrorShowsTheTextOfASecret)$$

# Each package has one thread: timers of one synctest bubble share one context of the detector, and with several
# threads Go 1.26 sometimes uses it twice at the same time, which is a crash in the detector (SIGSEGV in StackDepot).
RACE = CGO_ENABLED=1 go test -race -cpu 1 -short -vet=off -ldflags=-w -p 4 -timeout 30m -skip '$(NO_RACES_IN)'

race: setup ## Run the unit tests with the race detector, but those that boot machines
	$(RACE) ingot/reconcile $(filter-out $(NO_RACES) ingot/reconcile,$(UNITS)) # the longest first

# Where tests keep repositories and stores: in memory if there is room, for making
# thousands of small files on disk is most of what they wait for.
TESTS_TMP := $(shell [ -w /dev/shm ] && [ "$$(df --output=avail /dev/shm | tail -1)" -gt 4000000 ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

features: setup ## Run the features against the real program on the embedded store, with samples of the long proofs
	$(call timed,TMPDIR=$(TESTS_TMP) go test -count=1 -timeout 60m -parallel 12 -skip OnRedis $(FEATURES_FAST))

features-redis: setup ## Run the features on Redis, and those on the embedded store that "make features" leaves out
	$(IN_TIME) TMPDIR=$(TESTS_TMP) go test -count=1 -timeout 60m -parallel 12 -run FeaturesOnRedis ./features
	$(IN_TIME) TMPDIR=$(TESTS_TMP) FEATURES_LONG=1 go test -count=1 -timeout 60m -run FeaturesOnEmbedded ./features

test: setup vet units features ## What must pass before a push, in minutes: vet, unit tests, features

machines: setup ## Boot the discovery image, firmware and whole lives on machines of qemu (lab and lives as root)
	$(IN_TIME) go test -count=1 -timeout 30m ./cmd/probeimage # one after the other: they keep the processors busy
	$(IN_TIME) go test -count=1 -timeout 30m -v ./features/lab
	$(IN_TIME) go test -count=1 -timeout 20m -v -skip 'CloudImage|AreBroken' ./features/life

test-long: setup race machines features-redis ## The long proofs: data races, QEMU virtual machines, features on Redis, a Debian image on disk, all random histories of the loop, HISTORIES (10000) of the plan and a fifth of them of the source, broken installs, all kill points and WALK (200) of the program; less after PROOFS_UNTIL
	PROOFS_UNTIL=$(PROOFS_UNTIL) go test -count=1 -timeout 30m -v -run CloudImage ./features/life
	$(IN_TIME) go test -count=1 -timeout 10m ./bootsvc/diskimage ./cmd/metalprobe/install ./examples/monitoring
	$(IN_TIME) HISTORIES=$(HISTORIES) go test -count=1 -timeout 30m -v -run 'NoLaw$$|^TestWalks$$|IsNotDone$$|WasAnnounced$$|DelayNoOthers$$|^TestGuardNeverLetsMoreGoThanItsLimit$$' ./reconcile/...
	$(IN_TIME) HISTORIES=$(HISTORIES) go test -count=1 -timeout 60m -v -run 'AssembledAsAllIs|MergeForetells|HistoriesMeet|FarBack|CutByAge|HadCut|OtherNamesAtOnce|RefusesTheCut' ./gitsource
	PROOFS_UNTIL=$(PROOFS_UNTIL) go test -count=1 -timeout 30m -v -run AreBroken ./features/life
	TMPDIR=$(TESTS_TMP) PROOFS_UNTIL=$(PROOFS_UNTIL) KILLPOINTS=$(KILLPOINTS) go test -count=1 -timeout 30m -parallel 8 -v -run 'KillPoints' ./features
	TMPDIR=$(TESTS_TMP) PROOFS_UNTIL=$(PROOFS_UNTIL) WALK=$(WALK) go test -count=1 -timeout 40m -parallel 16 -v -run 'Walk' ./features

test-e2e: ## Take machines of qemu through the whole life of a server (as root)
	@test "$$(id -u)" = 0 || { echo "test-e2e: it makes network namespaces: run it as root" >&2; exit 1; }
	@.ci/setup
	@mkdir -p dist/e2e
	INGOT_LAB=required go test -count=1 -timeout 30m -v -artifacts -outputdir $(CURDIR)/dist/e2e ./features/life

lint: ## Check style, words, layers, formatting and go.mod
	@test -x $(GOLANGCI_LINT) || go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	$(GOLANGCI_LINT) run
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "make fmt would change:" $$unformatted; exit 1; }
	@.ci/words
	go mod tidy -diff

fmt: ## Format the code
	gofmt -w .
	$(GOLANGCI_LINT) fmt

bench: ## Run the benchmarks of the packages, of a fleet, of boots, of networks, and of docs/first-rack.md (as root)
	go test -run '^$$' -bench . -benchtime 200ms -benchmem -timeout 6m $(UNITS)
	go test -run '^$$' -bench 'Fleet|Boot|Change|Requests' -benchtime 1x -timeout 15m ./features/bench
	go test -run '^$$' -bench DHCP -benchtime 1x -timeout 15m ./features/bench
	go test -run '^$$' -bench FirstRack -benchtime 1x -timeout 15m ./features/bench

bench-scale: ## Measure 2,000 and 5,000 servers, and 20,000 claims that nothing fits
	go test -run '^$$' -bench Scale -benchtime 1x -timeout 90m ./features/bench

fuzz: ## Run each fuzz test for FUZZTIME (60s)
	@.ci/fuzz $(FUZZTIME)

image: ## Build the container image
	docker build --build-arg VERSION=$(VERSION) --tag $(IMAGE) .

probe-image: ## Build the discovery image into dist/probe: kernel, initramfs, UKI, OCI layout (Debian)
	go run ./cmd/probeimage --out dist/probe --version $(VERSION) $(PROBEIMAGE_FLAGS)

install: build ## Install ingot, and the discovery image where it is found without a setting (Debian, as root)
	install -D -m 0755 -t $(DESTDIR)/usr/local/bin bin/ingot
	go run ./cmd/probeimage --probe bin/metalprobe --layout $(DESTDIR)/usr/share/ingot/images/probe $(PROBEIMAGE_FLAGS)

dist: ## Make archives, packages, a container image, checksums and an SBOM of what is committed, in dist/release
	@bash .ci/dist $(VERSION)

# Of which architectures packages are tried, beside this machine's own.
PACKAGE_ARCHITECTURES ?= amd64 arm64

test-packages: setup ## Make packages of two versions, install, run, upgrade and purge them on a copy of this Debian that is thrown away, and run the container image (as root)
	@OUT=dist/packages/from PARTS=packages bash .ci/dist 1.0.0 $$(dpkg --print-architecture) >/dev/null
	@OUT=dist/packages/to PARTS="packages container" bash .ci/dist 1.0.1 $(PACKAGE_ARCHITECTURES) >/dev/null
	@bash .ci/package-test dist/packages/from dist/packages/to
	@bash .ci/container-test dist/packages/to/ingot-*-oci.tar

demo: ## Try Ingot on a simulated rack, on loopback only
	go run ./cmd/ingot demo

monitoring: ## Start the demo and a Prometheus with the rules of examples/monitoring loaded (Debian, Ubuntu)
	@.ci/monitoring

lint-dashboards: ## Check the dashboards with Grafana's linter
	@for file in examples/monitoring/dashboards/*.json; do \
		go run github.com/grafana/dashboard-linter@$(DASHBOARD_LINTER_VERSION) lint --strict $$file || exit 1; \
	done

clean: ## Remove what was built
	rm -rf bin dist
