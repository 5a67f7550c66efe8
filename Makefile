# Signalbox. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
MODULE := github.com/signalbox-io/signalbox
TOOL := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
# Tests that wait more than they work, for leases that expire and servers that start, run beside those that work. (Three
# packages at once on two processors are a minute less, and now and then a lease that expires in the middle of its test.)
TEST := $(GO) test -vet=all -parallel 4

# Packages without a goroutine or a lock of their own, where the race detector has nothing to see and makes everything
# several times as slow (internal/tidytest holds them to that). The clients of racelab are goroutines, but its world lets
# one run at a time, and hands over by channels.
SEQUENTIAL := $(addprefix ./engine/internal/,acl command conf ds exec keyspace lua rdb resp) ./internal/racelab
# Packages that try all their random cases without the detector, and some of them with it (internal/cases). Of two
# packages more it is one test each, which the target test names.
TWICE := ./autocomplete ./internal/simtest

.PHONY: help build test race test-deps fuzz crash restarts bench bench-locks bench-engine bench-durability bench-autocomplete faults record lint fmt cover install

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build bin/signalbox
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/signalbox ./cmd/signalbox

install: ## install signalbox into $GOBIN
	CGO_ENABLED=0 $(GO) install -trimpath ./cmd/signalbox

test: test-deps ## run every test, where there is concurrency with the race detector (installs redis-server on Debian as root)
	$(TEST) -timeout 9m $(SEQUENTIAL) $(TWICE)
	$(TEST) -timeout 9m -run 'TestFuzzAgainstRedis|TestQuorumTokensIncrease' ./engine .
	all="$$($(GO) list ./...)" && $(TEST) -race -timeout 9m $$(grep -vxF $(SEQUENTIAL:./%=-e $(MODULE)/%) <<<"$$all")
	$(GO) -C examples/fencing test -vet=all -race -timeout 3m ./...
	$(GO) -C clienttest test -vet=all -race -timeout 3m ./...

race: test-deps ## run every test and all random cases with the race detector; takes half an hour
	SIGNALBOX_ALL_CASES=1 $(TEST) -race -timeout 30m ./...

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

bench: test-deps ## measure beside Redis and bare round trips; prints ratios
	$(GO) -C bench run .

bench-locks: test-deps ## measure locks beside redsync, redislock, rueidislock and the book's: ARGS=-quick for a first look
	@$(GO) -C bench run . locks $(ARGS)

bench-durability: test-deps ## measure the append-only file, snapshots and loading beside Redis: ARGS=-quick for a first look
	@$(GO) -C bench run . durability $(ARGS)

bench-engine: test-deps ## measure the engine beside Redis, every aim in one table: ARGS=-quick|-only PATTERN|-json|-markdown
	@$(GO) -C bench run . engine $(ARGS)

bench-autocomplete: test-deps ## measure prefix lookups among a million entries beside the book's: ARGS='-entries 100000'
	$(GO) test ./autocomplete -run '^$$' -bench Lookup -benchtime 20000x -timeout 30m $(ARGS)

faults: test-deps ## break real servers under load, several times each, and write docs/faults.md
	$(GO) run ./internal/faults/matrix -o docs/faults.md

lint: ## run the linters, pinned in tools/go.mod
	$(TOOL) golangci-lint run ./...

fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...

cover: test-deps ## write coverage.html
	$(GO) test -coverprofile=coverage.out -coverpkg=./... ./... && $(GO) tool cover -html=coverage.out -o coverage.html
