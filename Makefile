# The front door. `make` lists the targets; the work is done by CMake (host programs, firmware, kernels for the card),
# Kbuild (the module) and the scripts under tools/.

CARDS  ?= 2
KERNEL ?= lts
PRESET ?= release
T      ?=
ROUNDS ?= 20
SEED   ?= 1

JOBS := $(shell nproc)
BIN  := build/release/bin
VM   := $(BIN)/orrery-vm --kernel $(KERNEL) --cards $(CARDS)
STEP := @echo "==>"

.DEFAULT_GOAL := help
.PHONY: help run test test-kill lint bench shell clean setup tree build programs kmod debug-kernel test-debug
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo "  Options: CARDS=$(CARDS) KERNEL=$(KERNEL) (lts, backports or debug) PRESET=$(PRESET) (for build: release, asan, tsan, gcc)"

run: programs kmod ## set up, build all, boot a VM with two cards and run the sample in it
	$(STEP) "VM with $(CARDS) cards: histogram"
	@$(VM) -- histogram

test: setup tree ## set up, build all, run all tests; T=regex runs the tests whose names match
	@tools/make/test.sh '$(T)'

test-kill: programs kmod ## kill cards at random instants under their users; ROUNDS=200 SEED=1
	@tests/vm/kill/rounds.sh $(BIN)/orrery-vm build/vm-tests/test-kill $(ROUNDS) $(SEED) 8 1

debug-kernel: tree ## build the kernel with KASAN, lockdep and their kind (once, 11 minutes of CPU)
	@tools/vm/debug-kernel.sh > /dev/null

test-debug: debug-kernel ## the VM tests on that kernel; T=regex runs those whose names match
	@tools/make/test-debug.sh '$(T)'

lint: build kmod ## formatting, clang-tidy, shellcheck, checkpatch, sparse
	@tools/lint/lint.sh

bench: build kmod ## measure, print a table, write build/bench.json
	@tools/bench/run.sh

shell: programs kmod ## a console in a VM with two cards
	@$(VM) --shell

clean: ## remove all that was built (the VM tree stays in the cache)
	rm -rf build

setup:
	@tools/setup/setup.sh

tree: setup
	@tools/vm/tree.sh > /dev/null

build: setup
	@tools/make/build.sh $(PRESET)

programs: setup
	@tools/make/build.sh release programs

kmod: tree
	@tools/vm/kbuild.sh
