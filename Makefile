# `make` lists the targets. CI runs .ci/run, which `make check` runs too.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

N ?= 100000
T ?= 60s

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

.PHONY: check
check: ## everything CI runs; one step alone: .ci/run STEP
	.ci/run

.PHONY: quick
quick: ## the part of it that takes a few minutes
	.ci/run quick

.PHONY: build
build: ## the static binary, ./weir
	CGO_ENABLED=0 go build -trimpath -o weir ./cmd/weir

.PHONY: weight
weight: ## size, packages, start time and memory of the binary
	go run ./internal/weight

.PHONY: release
release: ## binaries for six platforms, checksums and bills of materials, in dist
	.ci/release -twice

.PHONY: test
test: ## all tests
	go test ./...

.PHONY: long
long: ## the campaigns that CI runs beside the tests
	.ci/run campaigns

.PHONY: race
race: ## all tests with the race detector, in random order
	.ci/run race-core
	.ci/run race-faces
	.ci/run race-rest

.PHONY: lint
lint: ## format check and linters, at the pinned version
	.ci/run format
	.ci/run lint

.PHONY: format
format: ## format all Go files
	"$$(.ci/tool golangci-lint)" fmt

.PHONY: generate
generate: ## regenerate what is generated
	go generate ./...

.PHONY: tidy
tidy: ## go.mod and go.sum of all modules
	go mod tidy -e
	cd bench/peers && go mod tidy -e
	cd temporal && go mod tidy -e

.PHONY: bench
bench: ## the benchmarks of the product
	go test -run '^$$' -bench . -benchmem ./bench/...

.PHONY: peers
peers: ## the product beside its peers, in one run, with ratios
	cd bench/peers && go run .

.PHONY: sim
sim: ## N simulated schedules, by default 100,000
	go test ./runner -run TestSimulation -count=1 -timeout 0 -sim.n $(N)

.PHONY: writers
writers: N := 10000
writers: ## N simulated runs of 64 parallel writers, by default 10,000
	go test ./runner -run ParallelWriters -count=1 -timeout 0 -v -writers.n $(N)

.PHONY: trees
trees: N := 1000
trees: ## N trees of runs cancelled or killed, by default 1,000
	go test ./runner -run TestTreesOfFiveLevels -v -count=1 -timeout 0 -trees.n $(N)

.PHONY: simtrees
simtrees: N := 10000
simtrees: ## N simulated schedules of trees of runs, by default 10,000
	go test ./runner -run TestSimulatedTrees -v -count=1 -timeout 0 -simtrees.n $(N)

.PHONY: tampered
tampered: N := 1000
tampered: ## N records tampered with, by default 1,000: all must be found
	WEIR_TAMPERED=$(N) go test ./audit -run 'VerifyFindsEvery|KeptHeads|EveryColumnIsClassified|VerifyCoversEvery|ExportHasOneReading' -v -count=1 -timeout 0

.PHONY: postgres
postgres: ## 100 times kill -9 of PostgreSQL while 8 processes write, and under 8 servers of Weir, and connections cut
	WEIR_REQUIRE_POSTGRES=1 go test ./store/postgres -run 'KilledServer|ConnectionsCut' -v -count=1 -timeout 0 -postgres.kills 100
	WEIR_REQUIRE_POSTGRES=1 go test ./internal/crash -run ServersSurvive -v -count=1 -timeout 0 -crash.pgkills 100 -crash.pgcuts 200

.PHONY: temporal
temporal: N := 100
temporal: ## N times kill -9 of a worker while runs are executed on Temporal, by default 100, and 20 times of its server, on each store
	.ci/tool temporal >/dev/null
	WEIR_REQUIRE_TEMPORAL=1 go -C temporal test . -run 'WorkersAreKilled|ServerOfTemporalIsRestarted' -v -count=1 -timeout 0 -temporal.kills $(N) -temporal.busy -temporal.restarts 20

.PHONY: crash
crash: N := 10000
crash: ## N kill points of the real binary, by default 10,000
	go test ./internal/crash -run KillAtEveryWrite -v -count=1 -timeout 0 -crash.n $(N)

.PHONY: views
views: ## the requests of all conversations, at every budget and cut point
	go test ./internal/proof -run EveryRequest -v -count=1 -timeout 0 -views.all

.PHONY: sessions
sessions: N := 1000
sessions: ## two processes on one session, N rounds each, and killed in the middle
	go test ./internal/proof -run 'Processes|64' -v -count=1 -timeout 0 -sessions.n $(N)

.PHONY: ahead
ahead: N := 1000
ahead: TIMES := 20
ahead: ## four processes send N messages each ahead into one session, with kills and store errors, TIMES times
	go test ./internal/proof -run QueuedMessagesOfFourProcesses -v -count=1 -timeout 0 -ahead.n $(N) -ahead.times $(TIMES)

.PHONY: settings
settings: ## every setting and node key of every node type: each changes what happens, or is refused
	go test ./node/builtin -run 'TestEverySettingOfEveryType|TestEveryNodeKeyOfEveryType|TestEverySettingBesideEveryMode' -v -count=1 -timeout 0 | grep -vE '=== |--- PASS.*/'

.PHONY: hostile
hostile: N := 200
hostile: ## N sessions with hostile models, by default 200, against an outside ledger; and each hostile turn at every API
	go test ./internal/proof -run 'UsageMatchesExternalLedger|HostileToolCalls' -v -count=1 -timeout 0 -hostile.n $(N) -hostile.all

.PHONY: load
load: T := 10m
load: ## 100 runs at once with 200 live readers for T, by default 10m, then 20 times kill -9 of the server under that load
	go test ./server -run TestNothingIsLostUnderLoad -v -count=1 -timeout 0 -load.time $(T) -load.runs 100 -load.kills 20

.PHONY: slow-clients
slow-clients: N := 2000
slow-clients: ## N clients that send a byte a second, by default 2,000, while others use the server
	go test ./server -run TestSlowClients -v -count=1 -timeout 20m -slow.clients $(N)

.PHONY: clouds
clouds: ## the public npm clients of E2B against the server that the tests take for it
	go test ./sandbox/e2b -run ThePublicClients -v -count=1 -e2b.npm

.PHONY: faults
faults: F := .
faults: ## deliberate faults, one by one, which the tests must notice; F selects them by name
	go test ./internal/faults -run EveryFaultIsDetected -v -count=1 -timeout 0 -faults -faults.only '$(F)'

.PHONY: fuzz
fuzz: ## every fuzz test for T each, by default 60s
	@grep -rlE '^func Fuzz' --include=*_test.go . | xargs -r -n1 dirname | sort -u | while read -r dir; do \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //'); do \
			echo "== $$dir $$name"; go test "$$dir" -run '^$$' -fuzz "^$$name$$" -fuzztime $(T); \
		done; \
	done

.PHONY: clean
clean: ## what was built here
	rm -f weir
	go clean -testcache
