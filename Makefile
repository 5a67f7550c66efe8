# Signalbox. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
MODULE := github.com/signalbox-io/signalbox
# The repository is several modules (docs/decisions/038-modules.md), which go.work joins; "work" is the packages of all.
PACKAGES = $(patsubst $(CURDIR)/%,./%/...,$(filter-out $(CURDIR),$(shell $(GO) list -m -f '{{.Dir}}'))) ./...
# The linter and the speller are of the module in tools, outside the workspace; they are built there, and run here.
LINTER = $$(GOWORK=off $(GO) tool -n -modfile=tools/go.mod golangci-lint)

SPELLER = $$(GOWORK=off $(GO) tool -n -modfile=tools/go.mod misspell)

.DEFAULT_GOAL := help
# Tests that wait more than they work, for leases that expire and servers that start, run beside those that work. (Three
# packages at once on two processors are a minute less, and now and then a lease that expires in the middle of its test.)
TEST := $(GO) test -vet=all -parallel 4

# The race detector has each process sleep for a second before it ends, in which a race could still show. The tests end
# thousands of processes, all after what they were for.
export GORACE ?= atexit_sleep_ms=0

# Packages without a goroutine or a lock of their own, where the race detector has nothing to see and makes everything
# several times as slow (internal/tidytest holds them to that). The clients of racelab are goroutines, but its world lets
# one run at a time, and hands over by channels.
SEQUENTIAL := $(addprefix ./engine/internal/,acl command conf ds exec keyspace lua rdb resp) ./internal/racelab
# Packages that try all their random cases without the detector, and some of them with it (internal/cases). Of two
# packages more it is one test each, which the target test names.
TWICE := ./autocomplete ./internal/simtest ./internal/acquisition/simulation ./internal/queue/store ./internal/queue/histories

# What takes longest: packages that kill, suspend, move and cut off real servers, and wait until others have noticed, and
# drills of the program, with hundreds of processes.
LONG := ./conformance/clustertest ./conformance/sentineltest ./engine/internal/crashtest ./internal/faults/... ./internal/move
DRILLS := TestRunBehindSentinels|TestTheDrillOfTheQueue

.PHONY: help build test test-long race test-deps fuzz crash restarts drills simulate simulate-centre soak soak-queue processes bench bench-locks bench-engine bench-scale bench-durability bench-queue bench-autocomplete faults drill-move record lint docs-check site picture fmt cover install tidy test-install release release-snapshot test-deb

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build bin/signalbox
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/signalbox ./cmd/signalbox

install: ## install signalbox into $GOBIN
	CGO_ENABLED=0 $(GO) install -trimpath ./cmd/signalbox

# REDIS_SERVER=valkey-server make test has the tests start that as the real server.
test: test-deps ## run the tests, where there is concurrency with the race detector (installs redis-server on Debian as root)
	$(TEST) -timeout 9m $(SEQUENTIAL) $(TWICE)
	$(TEST) -timeout 9m -run 'TestFuzzAgainstRedis|TestQuorumTokensIncrease|TestOverloadIsNoFailure|TestThePromisesSurviveRestarts' ./engine . ./cmd/signalbox
	all="$$($(GO) list work)" && others="$$($(GO) list $(SEQUENTIAL) $(LONG))" && $(TEST) -race -timeout 15m -skip '$(DRILLS)' $$(grep -vxF "$$others" <<<"$$all")

test-long: test-deps ## run the tests that kill, move and cut off real servers, with the race detector
	$(TEST) -race -timeout 15m $(LONG)
	$(TEST) -race -timeout 15m -run '$(DRILLS)' ./cmd/signalbox

race: test-deps ## run every test and all random cases with the race detector; takes half an hour
	SIGNALBOX_ALL_CASES=1 $(TEST) -race -timeout 30m work

test-deps: ## install what the tests need and the machine lacks
	@./.ci/test-deps

fuzz: ## fuzz each target for a while: make fuzz FUZZTIME=30s
	@./.ci/fuzz $(or $(FUZZTIME),10s)

record: test-deps ## record the answers of the transcripts anew, from a real redis-server
	$(GO) test ./engine -run 'Transcript|BookExamples' -record

crash: ## kill the engine while it works, and look at what it has kept: make crash ROUNDS=10000 SEED=1
	CRASH_ROUNDS=$(or $(ROUNDS),1000) SEED=$(or $(SEED),1) $(GO) test ./engine/internal/crashtest -count=1 -timeout 10h -v

restarts: ## run the conformance suite while its engine is killed: make restarts ROUNDS=100 SEED=1
	RESTART_ROUNDS=$(or $(ROUNDS),20) SEED=$(or $(SEED),1) $(GO) test ./cmd/signalbox -run TestThePromisesSurviveRestarts -count=1 -timeout 10h -v

drills: test-deps ## kill, suspend and cut off the primaries of Sentinel groups of engines: make drills ROUNDS=200 SEED=1
	DRILL_ROUNDS=$(or $(ROUNDS),20) SEED=$(or $(SEED),1) $(GO) test ./internal/faults/sentinel -run TestSentinelRounds -count=1 -timeout 10h -v

simulate: ## play histories of the lock's core: make simulate SEEDS=100000 SEED=1
	SIGNALBOX_SEEDS=$(or $(SEEDS),100000) SIGNALBOX_SEED=$(or $(SEED),1) $(GO) test ./internal/acquisition/simulation -run TestHistories -count=1 -timeout 10h -v

simulate-centre: ## a day of a contact centre in virtual time: make simulate-centre AGENTS=1000 TASKS=200000 SEED=1
	SIGNALBOX_CENTRE="$(or $(AGENTS),1000) $(or $(TASKS),200000) $(or $(SEED),1)" $(GO) test ./queue -run TestADayInTheCentre -count=1 -timeout 10h -v

soak: test-deps ## 5,000 goroutines in several processes while everything breaks that may: make soak FOR=10m SEED=1
	SOAK_FOR=$(or $(FOR),10m) SEED=$(or $(SEED),1) $(GO) test ./internal/faults/soak -run TestSoak -count=1 -timeout 10h -v

soak-queue: test-deps ## random programs of the queue beside its model, random runs, and every schedule of the laboratory: make soak-queue TIMES=50
	SIGNALBOX_QUEUE_SOAK=$(or $(TIMES),50) SIGNALBOX_QUEUE_SEEDS=$$(( 12 * $(or $(TIMES),50) )) $(GO) test ./internal/queue/store ./internal/queue/histories ./internal/racelab -run 'Model|Random|Histories|QueueIsClean' -count=1 -timeout 10h -v

processes: test-deps ## 200 processes on a handful of names, whose turns are counted: make processes FOR=1m
	PROCESSES_FOR=$(or $(FOR),1m) $(GO) test ./internal/faults/soak -run TestProcesses -count=1 -timeout 10h -v

bench: test-deps ## measure beside Redis and bare round trips; prints ratios
	$(GO) -C bench run .

bench-locks: test-deps ## measure locks beside redsync, redislock, rueidislock and the book's: ARGS='-quick -only load' for a first look at a part
	@$(GO) -C bench run . locks $(ARGS)

bench-durability: test-deps ## measure the append-only file, snapshots and loading beside Redis: ARGS=-quick for a first look
	@$(GO) -C bench run . durability $(ARGS)

bench-engine: test-deps ## measure the engine beside Redis, every aim in one table: ARGS=-quick|-only PATTERN|-json|-markdown
	@$(GO) -C bench run . engine $(ARGS)

bench-scale: test-deps ## measure how the cost of each transition grows, and reckon what large systems need: ARGS=-quick|-markdown
	@$(GO) -C bench run . scale $(ARGS)

bench-queue: test-deps ## measure the task queue beside asynq, River and BullMQ, every aim in one table: ARGS=-quick|-only PATTERN|-json|-markdown
	@$(GO) -C bench run . queue $(ARGS)

bench-autocomplete: test-deps ## measure prefix lookups among a million entries beside the book's: ARGS='-entries 100000'
	$(GO) test ./autocomplete -run '^$$' -bench Lookup -benchtime 20000x -timeout 30m $(ARGS)

faults: test-deps ## break real servers under load, several times each, and write docs/faults.md
	$(GO) run ./internal/faults/matrix -o docs/faults.md

drill-move: test-deps ## move a loaded server ROUNDS times, and kill the source, the target or the move meanwhile: ROUNDS=100 SEED=1
	MOVE_ROUNDS=$(or $(ROUNDS),100) SEED=$(or $(SEED),1) $(GO) test ./internal/move -run TestMoveUnderLoad -count=1 -timeout 10h -v

lint: ## run the linters, pinned in tools/go.mod
	$(LINTER) run $(PACKAGES)

docs-check: ## check the pages: links and anchors, commands and their flags, Go that compiles, spelling
	$(GO) test ./internal/tidytest -run 'Docs|Book'
	$(GO) test ./cmd/signalbox -run 'TestDocs'
	@$(SPELLER) -error $$(git ls-files '*.md' '*.yml' '*.txtar' | grep -v -e testdata/ -e bench/results/)

site: ## build the pages as a site into dist/site, with a search; a dead link is an error
	npm ci --prefix tools/site --loglevel=error
	rm -rf tools/site/.pages && mkdir tools/site/.pages
	git ls-files -z '*.md' '*.svg' '*.png' ':!*/testdata/*' ':!bench/results' | tar --null -T - -cf - | tar -xf - -C tools/site/.pages
	npm run --prefix tools/site build

picture: build ## record the first minute of the README in three terminals, and draw docs/minute.svg
	@./.ci/picture

fmt: ## format the code
	$(LINTER) fmt $(PACKAGES)

cover: test-deps ## write coverage.html
	$(GO) test -coverprofile=coverage.out -coverpkg=$(MODULE)/... work && $(GO) tool cover -html=coverage.out -o coverage.html

tidy: ## go mod tidy in every module
	@./.ci/tidy

test-install: ## install the program as from a tag, out of a module proxy made of this tree; count an importer's modules
	@./.ci/test-install

release: ## build a release into dist: make release VERSION=v1.2.3 [TARGETS="linux/amd64 darwin/arm64"]
	@TARGETS="$(TARGETS)" ./.ci/release $(or $(VERSION),$(error give the version: make release VERSION=v1.2.3))

release-snapshot: ## build what would be released now: make release-snapshot TARGETS="linux/amd64"
	@TARGETS="$(TARGETS)" ./.ci/release "$$(./.ci/version)-snapshot.$$(git rev-parse --short HEAD)"

test-deb: ## install the .deb of dist on this Debian as root, use it, purge it
	@./.ci/test-deb
