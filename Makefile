# The targets for contributors. `make check` is part of CI and the definition of done.
GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 30s

BIN := $(CURDIR)/bin
# A program of the module bench, built and run here.
bench = go build -C bench -o $(BIN)/bench-$(1) ./$(1) && $(BIN)/bench-$(1)
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)

.PHONY: sdk-packages release-try outside check build test test-race test-sdk test-browser test-agents test-bench test-adapters test-fleet report-bundle report-bundle-check night lint fmt fmt-check tidy-check generate generate-check fuzz soak soak-gateway soak-orders bench bench-docs bench-peers arena bench-gateway wires wires-clients wires-times bench-search outline-accuracy results golden

check: tidy-check build lint test

# A snapshot of a release, installed from its files. Nightly.
release-try:
	sh tools/release.sh

# The SDKs as packages: `npm publish` and `twine upload` take these files.
sdk-packages:
	mkdir -p dist
	npm pack --pack-destination dist ./plugin-sdk/node
	python3 -m pip wheel --no-deps --wheel-dir dist ./plugin-sdk/python

build:
	go build ./...

# Every test, and then those of concurrent code again with the race detector: see tools/race.sh. `make test-race` runs every test with it,
# in 20 minutes on two processors: for the night.
# The time-out is per package. It is long because a busy machine can take many times as long
# as an idle one, and no test asserts a duration.
# The linter vets, and more of it.
# Packages begin in this order, and the command and live take longest: last, they would keep one processor waiting.
# Without a C compiler there is no race detector. Tests of programs that are missing are skipped, and named at the end.
RACE := $(if $(shell command -v cc || command -v gcc || command -v clang),-race)
LONG := ./live ./cmd/condense
OTHERS = $$(go list ./... | grep -v -e '/condense/live$$' -e '/cmd/condense$$')
# With CPU_TIMES the processor time of each package is added to that file.
test:
	@status=0; go test $(if $(CPU_TIMES),-exec "sh $(CURDIR)/tools/cpu.sh") -vet=off -shuffle=on -timeout 60m $(LONG) $(OTHERS) || status=$$?; \
	$(if $(RACE),sh tools/race.sh || status=$$?;) \
	sh tools/skipped.sh; exit $$status

test-race:
	@status=0; go test -race -shuffle=on -timeout 60m $(LONG) $(OTHERS) || status=$$?; \
	sh tools/skipped.sh; exit $$status

# What CI does each night, in hours: every test with the race detector, with all pairs of APIs and forms; then four times as many random
# cases as by hand, other ones each night (the seed is printed: RAPID_SEED=N repeats them); every agent in every test; then the long
# histories and days.
RAPID_SEED ?= $(shell date +%s)
night: export RAPID_SEED := $(RAPID_SEED)
night: export CONDENSE_NIGHT = 1
night:
	@echo "RAPID_SEED=$(RAPID_SEED)"
	$(MAKE) --no-print-directory test-race
	RAPID_CHECKS=400 $(MAKE) --no-print-directory test RACE=
	CONDENSE_AGENTS=all $(MAKE) --no-print-directory test-agents
	$(MAKE) --no-print-directory test-adapters ADAPTERS='eino langchaingo adk anthropic openai ../examples/peers'
	$(MAKE) --no-print-directory soak HISTORIES=1000000
	$(MAKE) --no-print-directory soak-orders ORDERS=10000
	@echo "RAPID_SEED=$(RAPID_SEED)"

# The official SDKs of the vendors accept what the program writes. A module of its own, not in
# `make check`: its first build takes minutes and up to 3 GB of memory.
test-sdk:
	cd test/sdk && go mod tidy -diff && go vet ./... && go test -vet=off -timeout 60m ./...

# The HTML pages in a real Chromium, found in PATH or named by CONDENSE_CHROMIUM.
test-browser:
	cd test/browser && go mod tidy -diff && go vet ./... && go test -vet=off -timeout 60m ./...

# What measures condense, and what makes the weights of internal/value: a module of its own, which the program does not need.
test-bench:
	cd bench && go mod tidy -diff && go vet ./... && go test -vet=off -timeout 60m ./...

# The adapters for Go's frameworks and SDKs, and other projects' algorithms, each a module of its own. At night ADAPTERS has those whose libraries are slow to build, too.
ADAPTERS ?= eino langchaingo ../examples/peers
test-adapters:
	@set -e; for d in . $(ADAPTERS); do echo "adapters/$$d"; cd $(CURDIR)/adapters/$$d; go mod tidy -diff; go vet ./...; go test -vet=off -timeout 60m ./...; done

# Real agents (Claude Code, Codex, OpenCode, pi) against a scripted vendor on the loopback. The first run installs them
# from npm: 1 GB, in the user's cache directory. CONDENSE_AGENTS=all tries each of them in every test, which takes half an hour.
test-agents:
	cd test/agents && go mod tidy -diff && go vet ./... && go test -vet=off -parallel 3 -timeout 60m ./...

# Four gateways that share a PostgreSQL, killed at random, the database stopped for ten seconds. `make test` has a short form.
FLEET ?= 200x60
test-fleet:
	CONDENSE_FLEET=$(FLEET) go test -count=1 -v -timeout 30m ./test/fleet

# The script of the HTML pages, from internal/lab/report/web. The build is committed, so that
# building the program does not need node.
REPORT_WEB := internal/lab/report/web
# Its packages are installed once for each lockfile, in the user's cache folder, as those of tests are.
PACKAGES = $${XDG_CACHE_HOME:-$$HOME/.cache}/condense/report-web/$$(cksum <$(REPORT_WEB)/package-lock.json | tr ' ' -)
$(REPORT_WEB)/node_modules: $(REPORT_WEB)/package-lock.json
	[ -d "$(PACKAGES)" ] || { rm -rf "$(PACKAGES).new" && mkdir -p "$(PACKAGES).new" && cp $(REPORT_WEB)/package*.json "$(PACKAGES).new" && \
	cd "$(PACKAGES).new" && npm ci --ignore-scripts --no-audit --no-fund && cd $(CURDIR) && mv "$(PACKAGES).new" "$(PACKAGES)"; }
	rm -rf $@ && cp -R "$(PACKAGES)/node_modules" $@

report-bundle: $(REPORT_WEB)/node_modules
	cd $(REPORT_WEB) && npm run --silent build

report-bundle-check: report-bundle
	git diff --stat --exit-code -- internal/lab/report/assets

# Tools are pinned here and built into bin/, and not required by go.mod, which keeps them out of
# the module graph of plugin authors.
$(GOLANGCI):
	mkdir -p $(BIN)
	GOBIN=$(BIN) GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

lint: $(GOLANGCI)
	$(GOLANGCI) run --allow-parallel-runners ./...

fmt: $(GOLANGCI)
	$(GOLANGCI) fmt ./...

fmt-check: $(GOLANGCI)
	$(GOLANGCI) fmt --diff ./...

tidy-check:
	go mod tidy -diff
	go mod verify

# Code for the protocol of plugins. The generators are pinned in tools/go.mod.
generate:
	go generate ./internal/wire/condensepb

generate-check: generate
	git diff --exit-code -- internal/wire/condensepb

# Every fuzz target in turn, FUZZTIME each. Seeds and found inputs also run in `make test`.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
		done; \
	done

# First a day of the gateway in simulated time, HOURSxCONVERSATIONS, in some minutes (`make test` has 6x12). Then 16,000 conversations with a plugin that crashes repeatedly, in about two minutes (`make
# test` has 200). Then HISTORIES random histories through Manage and undo, checked independently:
# 10,000,000 at 0.3 ms of processor time each take half an hour on two idle processors (`make test`
# has 2,000). Memory does not grow with their number.
HISTORIES ?= 10000000
soak: soak-gateway
	CONDENSE_SOAK=1 go test -race -count=1 -v -run '^TestSoak$$' -timeout 30m ./internal/plugins/supervise
	CONDENSE_SOAK_HISTORIES=$(HISTORIES) go test -count=1 -v -run '^TestSoakHistories$$' -timeout 24h ./test/runtime

GATEWAY ?= 24x125
soak-gateway:
	CONDENSE_SOAK_GATEWAY=$(GATEWAY) go test -count=1 -v -run '^TestSoakGateway$$' -timeout 60m ./live

# Random conversations of two gateways with one store, whose users condense, undo, protect and pause: ORDERS runs, in half an hour of
# processor time (`make test` has 40). A failure prints the seed that repeats it.
ORDERS ?= 100000
soak-orders:
	GOGC=400 go test -count=1 -v -run '^TestGrowingWithOrders$$' -timeout 10h ./live -rapid.checks=$(ORDERS)

bench:
	go test -run '^$$' -bench . -benchmem ./...
	cd bench && go test -run '^$$' -bench . -benchmem ./...

# The numbers of bench/results/appendix-benchmarks.md. Many short runs, because on a busy machine the fastest is the
# most meaningful. The process is timed separately: see BenchmarkRun.
BENCHCOUNT ?= 30
bench-docs:
	cd bench && go test -run '^$$' -bench 'Run' -benchtime 5x -count 10 .
	cd bench && go test -run '^$$' -bench 'Check|Truncate' -benchtime 0.2s -count 10 .
	cd bench && go test -run '^$$' -bench 'Count' -benchtime 1x -count 10 .
	go test -run '^$$' -bench 'Count' -benchtime 1x -count 10 ./tokens
	go test -run '^$$' -bench 'Append|Refresh' -benchtime 20ms -count $(BENCHCOUNT) ./core/history
	go test -run '^$$' -bench Condense -benchtime 20x -count 5 ./providers/native

# Other programs on the same conversation. Needs node, npm and the network.
bench-peers:
	mkdir -p $(BIN)
	$(call bench,session) > $(BIN)/session.json
	cd bench/peers && npm ci --ignore-scripts --no-audit --no-fund && node --expose-gc bench.mjs $(BIN)/session.json
	cd bench/peers/eino && go run . $(BIN)/session.json

# Programs of others and smart on the same sessions by every measure, in 30 minutes: see docs/comparing.md. Sessions are those of 14 projects in
# the folder SESSIONS, else the bundled ones; RECORDED is a folder of sessions that record compactions, GOLD one of conversations
# written by bench/outside. The programs are installed into ARENA, which needs node, npm and the network; sources that are in ARENA/src, and
# programs built into ARENA, run too.
ARENA ?= $(HOME)/.cache/condense/arena
GOLD ?=
RECORDED ?=
arena:
	mkdir -p $(BIN) $(ARENA)
	cp bench/peers/*.mjs bench/peers/*.py bench/peers/*.json bench/peers/.npmrc $(ARENA)
	-cd $(ARENA) && { cmp -s package-lock.json installed || { npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json installed; }; }
	-cd bench/peers/eino && go build -o $(ARENA)/eino .
	go build -o $(BIN)/condense ./cmd/condense
	$(call bench,arena) -condense $(BIN)/condense -peers $(ARENA) -out $(BIN)/arena -sessions "$(SESSIONS)" -recorded "$(RECORDED)" -gold "$(GOLD)" -results bench/results/arena.md

# What `condense serve` adds to a request, next to a bare reverse proxy and another gateway. STEPS='-steps streams -peers=' measures 500 parallel
# streams only, without that gateway, in four minutes; see the flags of bench/gateway.
STEPS =
bench-gateway:
	mkdir -p $(BIN)
	go build -o $(BIN)/condense ./cmd/condense
	$(if $(findstring -peers=,$(STEPS)),,cd bench/peers && npm ci --ignore-scripts --no-audit --no-fund)
	$(call bench,gateway) $(STEPS)

# bench/results/wires.md: unmodified clients on every API, pinned in bench/wires/clients and installed into bin/clients (1.4 GB, from npm), in
# fifteen minutes on two idle processors, and then the time added to a request, in four. A refused request, more breaks than condensations, or a
# client that fails ends it with the row's name. `bin/bench-wires -only 'Gemini CLI.*: 45'` then runs these rows only.
CLIENTS := $(BIN)/clients
wires: wires-clients wires-times

$(CLIENTS)/node_modules: bench/wires/clients/package-lock.json
	mkdir -p $(CLIENTS)
	cp bench/wires/clients/package.json bench/wires/clients/package-lock.json $(CLIENTS)
	-cd $(CLIENTS) && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules

wires-clients: $(CLIENTS)/node_modules
	cp bench/wires/clients/*.mjs $(CLIENTS)
	go build -o $(BIN)/condense ./cmd/condense
	$(call bench,wires) > $(BIN)/wires.md
	sed -n '/^## Added time$$/,$$p' bench/results/wires.md >> $(BIN)/wires.md
	mv $(BIN)/wires.md bench/results/wires.md

wires-times:
	sed '/^## Added time$$/,$$d' bench/results/wires.md > $(BIN)/wires.md
	$(call bench,wires) -times >> $(BIN)/wires.md
	mv $(BIN)/wires.md bench/results/wires.md

# bench/results/presets.md, and the table in docs/smart.md: every preset on the recorded sessions in
# CONDENSE_TRACES_DIR.
results:
	@test -n "$(CONDENSE_TRACES_DIR)" || { echo "set CONDENSE_TRACES_DIR to a folder of sessions" >&2; exit 2; }
	mkdir -p $(BIN)
	go build -o $(BIN)/condense ./cmd/condense
	sed '/^<!-- results -->$$/q' bench/results/presets.md >$(BIN)/results.md
	cd $(CONDENSE_TRACES_DIR) && $(BIN)/condense compare . --strategies all --budgets 10%,25%,50%,real --windows 32k,128k --rounds 5 --cache none --quiet --output md >>$(BIN)/results.md
	printf '\n## Whole sessions\n\n' >>$(BIN)/results.md
	cd $(CONDENSE_TRACES_DIR) && $(BIN)/condense compare . --replay --quiet --output md >>$(BIN)/results.md
	mv $(BIN)/results.md bench/results/presets.md
	sed '/^<!-- scores -->$$/q' docs/smart.md >$(BIN)/smart.md
	awk -f tools/scores.awk bench/results/presets.md >>$(BIN)/smart.md
	sed -n '/^<!-- end of scores -->$$/,$$p' docs/smart.md >>$(BIN)/smart.md
	mv $(BIN)/smart.md docs/smart.md

# What is left of the messages that answer questions, and how well search finds them, on published conversations whose gold others made. Fetch the repositories,
# convert them, and name the folders: make outside OUTSIDE='beam locomo'. The data have licences of their own and stay outside.
OUTSIDE ?=
OUTSIDE_STRATEGIES ?= smart=bare:smart{}
outside:
	go build -C bench -o $(BIN)/bench-outside ./outside
	@test -n "$(OUTSIDE)" || { printf '%s\n' \
	  'https://github.com/mohammadtavakoli78/BEAM        bin/bench-outside beam BEAM/chats/100K OUT 1-10' \
	  'https://github.com/snap-research/locomo           bin/bench-outside locomo locomo10.json OUT 1-5' \
	  'https://github.com/profff/lost-in-compaction      bin/bench-outside lost .../contexts/d40_C1.json OUT' \
	  'any sessions of coding agents                     bin/bench-outside anchors SESSION... OUT' \
	  'then: make outside OUTSIDE="OUT ..."' >&2; exit 2; }
	mkdir -p $(BIN)
	go build -o $(BIN)/condense ./cmd/condense
	@set -e; for d in $(OUTSIDE); do echo "$$d"; $(BIN)/condense compare "evidence:$$d" --budgets 10%,25%,50% --cache none --quiet --strategies '$(OUTSIDE_STRATEGIES)'; \
	  $(BIN)/bench-outside search "$$d"; done

# condense search on SIZE bytes of sessions that are made of the recorded ones in FROM: the index, 200 queries, a session that grew and one that is
# gone, all timed. Needs 1.6 times SIZE in the folder for temporary files.
SIZE ?= 200M
FROM ?= testdata/traces
bench-search:
	mkdir -p $(BIN)
	go build -o $(BIN)/condense ./cmd/condense
	$(call bench,search) -condense $(BIN)/condense -size $(SIZE) -sessions $(FROM)

# How well the outline finds definitions, against tree-sitter. Needs Debian or Ubuntu, npm
# and the network.
outline-accuracy:
	./bench/outline/corpus.sh
	cd bench/outline && npm ci --ignore-scripts --no-audit --no-fund && node oracle.mjs > .corpus.jsonl && go run . < .corpus.jsonl

golden:
	go test ./test/house ./config -update

# The modules of WebAssembly that tests run, which are committed: CI has neither compiler. The Rust one needs the target
# wasm32-unknown-unknown, the others npm.
.PHONY: wasm-fixtures
wasm-fixtures:
	sh tools/wasm-fixtures.sh
