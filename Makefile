# `--workspace` with one `--bin`, never `-p`: cargo gives the dependencies the features that the packages it was asked for
# need, so that `-p weir` would compile the large ones again, for other features than the tests have.
#
# Every target sets up what it needs by itself; the first time takes minutes.
SHELL := /bin/bash
.DEFAULT_GOAL := help

help: ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## put Weir in front of a real MCP server, show a block, serve until Ctrl-C (ONCE=1: stop after the block)
	@scripts/run.sh

test: ## everything: format, lints, all tests, the conformance suite, real clients, dependency checks
	@scripts/test.sh

build: ## the weir binary, in target/release
	@scripts/setup.sh build && . scripts/env.sh && cargo build --release --workspace --bin weir

runner: ## the weir-runner binary, and what hosting needs (gVisor and tools)
	@scripts/setup.sh runner && . scripts/env.sh && cargo build --release --workspace --bin weir-runner

runner-bench: runner ## how long a sandbox's start takes, each way to start; needs root and a running weir-runner serve
	@. scripts/env.sh && "$$TARGET/release/weir-runner" bench

runner-loops: runner ## a thousand executions, a hundred kills of the runner and of sandboxes, a hundred sandboxes; needs root
	@. scripts/env.sh && cargo test --release -p weir-runner --test loops -- --ignored --nocapture --test-threads 1

check: ## quick feedback: format and lints only
	@scripts/setup.sh build && . scripts/env.sh && cargo fmt --check && cargo clippy --release --workspace --all-targets -- -D warnings

bench: build ## added latency and CPU per call against direct and against a bare pass-through (a few minutes)
	@. scripts/env.sh && cargo build --release --workspace --bin weir-bench && "$$TARGET/release/weir-bench" quick

scan-bench: build ## what a scan costs, engine by engine, beside a floor (a minute)
	@. scripts/env.sh && cargo run --release -q -p scan-bench -- table

plugin-bench: ## what a policy plugin costs per message, in Rust and in JavaScript
	@scripts/plugin-bench.sh

fuzz: ## each fuzz target for SECONDS_EACH seconds (default 60)
	@scripts/fuzz.sh

soak: build ## steady mixed traffic for MINUTES minutes (default 10): memory, descriptors, wrong answers
	@. scripts/env.sh && cargo build --release -q --workspace --bins && "$$TARGET/release/soak" $(or $(MINUTES),10)

kill-loop: build ## kill -9 in mid-traffic ROUNDS times (default 100): no acknowledged record lost, no child left
	@. scripts/env.sh && cargo build --release -q --workspace --bins && "$$TARGET/release/kill-loop" $(or $(ROUNDS),100)

deny: ## dependency rules: licences, sources, bans, advisories
	@scripts/setup.sh test && scripts/deny.sh

.PHONY: help run test build runner runner-bench runner-loops check bench scan-bench plugin-bench fuzz soak kill-loop deny
