# `--workspace` with one `--bin`, never `-p`: cargo gives the dependencies the features that the packages it was asked for
# need, so that `-p weir` would compile the large ones again, for other features than the tests have.
#
# Every target sets up what it needs by itself; the first time takes minutes.
SHELL := /bin/bash
.DEFAULT_GOAL := help

help: ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: ## front a real MCP server, host one in gVisor (as root), show a block and a refused way out, serve until Ctrl-C (ONCE=1: stop)
	@scripts/run.sh

test: ## everything: format, lints, all tests, the conformance suite, real clients, dependency checks
	@scripts/test.sh

build: ## the weir binary, in target/release
	@scripts/setup.sh build && . scripts/env.sh && cargo build --release --workspace --bin weir

runner: ## the weir-runner binary, and what hosting needs (gVisor and tools)
	@scripts/setup.sh runner && . scripts/env.sh && cargo build --release --workspace --bin weir-runner

runner-bench: runner ## how long a sandbox's start takes, each way to start; needs root and a running weir-runner serve
	@. scripts/env.sh && "$$TARGET/release/weir-runner" bench

runner-loops: runner ## a thousand executions, a hundred kills of runner, gateway and sandboxes under traffic, a hundred sandboxes; needs root (ROUNDS=100)
	@. scripts/env.sh && cargo build --release --workspace --bins && cargo test --release --workspace --test loops --test hosted_kills -- --ignored --nocapture --test-threads 1

runner-neighbours: runner ## the p99 of a sandbox's calls beside each resource bomb in another; needs root (CALLS=1000 PAIRS=5 ONLY=name)
	@. scripts/env.sh && cargo test --release -p weir-runner --test neighbours -- --ignored --nocapture

runner-vm: ## hosting's tests in an emulated machine whose control groups are of version 2; a quarter of an hour and more (TESTS='name ...')
	@scripts/vm.sh $(TESTS)

check: ## quick feedback: format and lints only
	@scripts/setup.sh build && . scripts/env.sh && cargo fmt --check && cargo clippy --release --workspace --all-targets -- -D warnings

bench: ## added latency and CPU per call against direct and against a bare pass-through (about three minutes)
	@scripts/bench.sh quick

bench-full: ## all sizes, contents, forms of weir, other MCP proxies, overload, a soak of MINUTES (default 20); over two hours
	@scripts/bench.sh full $(if $(OUT),--out $(OUT))

bench-hosted: ## a call into a sandbox through weir against the same server native; needs root (under ten minutes)
	@scripts/bench.sh hosted $(if $(OUT),--out $(OUT))

bench-peers: ## install other MCP proxies to compare with, from package registries
	@scripts/bench.sh peers

bench-soak: ## a mixed day for MINUTES (default 20): memory and descriptors, as a page with plots
	@scripts/bench.sh soak

overload: ## three times the peak rate against a bare pass-through and weir: good answers, refusals, recovery
	@scripts/bench.sh overload

bench-readme: ## check a run in (REPORT=FOLDER of a full run on a quiet machine) and write the README's figures from it
	@scripts/bench.sh readme

bench-hosted-readme: ## check a hosted run in (REPORT=FOLDER, quiet machine) and write the table of docs/benchmark.md from it
	@scripts/bench.sh hosted-readme

scan-bench: build ## what a scan costs, engine by engine, beside a floor (some minutes)
	@. scripts/env.sh && cargo run --release -q -p scan-bench -- table

plugin-bench: ## what a policy plugin costs per message, in Rust and in JavaScript
	@scripts/plugin-bench.sh

baseline: ## count the instructions of the data path anew; say in the commit why they changed
	@scripts/setup.sh test && . scripts/env.sh && cargo build --release --workspace --bin weir-gate && "$$TARGET/release/weir-gate" --write-baseline

fuzz: ## each fuzz target for SECONDS_EACH seconds (default 60)
	@scripts/fuzz.sh

soak: build ## steady mixed traffic for MINUTES minutes (default 10): memory, descriptors, wrong answers
	@. scripts/env.sh && cargo build --release -q --workspace --bins && "$$TARGET/release/soak" $(or $(MINUTES),10)

kill-loop: build ## kill -9 in mid-traffic ROUNDS times (default 100): no acknowledged record lost, no child left
	@. scripts/env.sh && cargo build --release -q --workspace --bins && "$$TARGET/release/kill-loop" $(or $(ROUNDS),100)

deny: ## dependency rules: licences, sources, bans, advisories
	@scripts/setup.sh test && scripts/deny.sh

.PHONY: help run test build runner runner-bench runner-loops runner-neighbours runner-vm check bench scan-bench plugin-bench fuzz soak kill-loop deny bench-full bench-hosted bench-hosted-readme bench-peers bench-soak bench-readme overload baseline
