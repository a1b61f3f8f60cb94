# The front door. `make` lists the targets; the work is done by CMake (host programs, firmware, kernels for the card),
# Kbuild (the module) and the scripts under tools/.

CARDS  ?= 2
KERNEL ?= lts
PRESET ?= release
T      ?=
RENEW  ?=
ROUNDS ?= 20
SEED   ?= 1
VECTOR_PROGRAMS ?= 2000
ROOT   ?= debian
TOUR   := vector_basics gemm attention embedding overlap

BIN  := build/release/bin
VM   := $(BIN)/orrery-vm --kernel $(KERNEL) --cards $(CARDS)
STEP := @echo "==>"

.DEFAULT_GOAL := help
.PHONY: help run test test-long test-kill test-riscv lint bench shell programs build tree clean debug-kernel test-debug root test-root
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo "  Options: CARDS=$(CARDS) KERNEL=$(KERNEL) (lts, backports or debug) PRESET=$(PRESET) (for build: release, asan, tsan, gcc)"

run: ## set up, build what it takes, boot a VM with two cards and run the samples in it
	@tools/setup/setup.sh run
	@tools/make/prepare.sh $(KERNEL) tools/make/build.sh --for run release sample
	$(STEP) "VM with $(CARDS) cards: histogram, then a tour of the samples in vector code"
	@$(VM) -- sh -c 'histogram && for sample in $(TOUR); do $$sample --quick || exit; done'

test: ## set up, build all, run all tests; T=regex runs the tests whose names match
	@tools/setup/setup.sh run test
	@tools/make/test.sh '$(T)'

test-long: ## what would make `make test` too long: more on the newer kernel, all tools with sanitizers; T=regex
	@tools/setup/setup.sh run test
	@tools/make/test-long.sh '$(T)'

test-kill: ## kill cards at random instants under their users; ROUNDS=200 SEED=1
	@tools/setup/setup.sh run test
	@tools/make/prepare.sh lts tools/make/build.sh --for test release programs kmod_work
	@tests/vm/kill/rounds.sh $(BIN)/orrery-vm build/vm-tests/test-kill $(ROUNDS) $(SEED) 8 1

test-riscv: ## random vector programs, for long: VECTOR_PROGRAMS=2000 SEED=1
	@tools/setup/setup.sh run test
	@tools/make/prepare.sh lts tools/make/build.sh --for test release riscv_random_test
	@ORRERY_PROGRAMS=$(VECTOR_PROGRAMS) ORRERY_SEED=$(SEED) $(BIN)/riscv_random_test

debug-kernel: tree ## build the kernel with KASAN, lockdep and their kind (once, 11 minutes of CPU)
	@tools/vm/debug-kernel.sh > /dev/null

test-debug: debug-kernel ## the VM tests on that kernel; T=regex runs those whose names match
	@tools/setup/setup.sh run test
	@tools/make/test-debug.sh '$(T)'

lint: ## formatting, clang-tidy, shellcheck, checkpatch, sparse
	@tools/setup/setup.sh run test lint
	@tools/make/prepare.sh lts tools/make/build.sh --for test $(PRESET)
	@tools/lint/lint.sh

bench: ## measure beside yardsticks, goals and the run before; ONLY=suite or regex measures some
	@tools/setup/setup.sh run test
	@tools/make/prepare.sh lts tools/make/build.sh --for bench $(PRESET)
	@$(BIN)/orrery-bench $(if $(ONLY),--only '$(ONLY)')

programs: ## all that users run: those of `make run`, orrery-step, every sample
	@tools/setup/setup.sh run
	@tools/make/prepare.sh $(KERNEL) tools/make/build.sh --for run release programs

shell: programs ## a console in a VM with two cards
	@$(VM) --shell

build: ## compile everything; PRESET=gcc does it in build/gcc, with g++
	@tools/setup/setup.sh run test
	@tools/make/build.sh $(PRESET)

tree: ## the VM tree, if it is missing; RENEW=1 takes newer kernels and QEMU
	@tools/setup/setup.sh run
	@tools/vm/tree.sh $(if $(RENEW),--renew) > /dev/null

root: ## a small Debian for orrery-vm --root; ROOT=debian+python3+gdb has more packages
	@tools/setup/setup.sh run root
	@tools/vm/root.sh '$(ROOT)' > /dev/null

test-root: root ## the tests of that
	@tools/setup/setup.sh run test
	@tools/make/prepare.sh all tools/make/build.sh --for test release programs
	@ctest --test-dir build/release --build-config root-image --label-regex '^root-image$$' --output-on-failure --no-tests=error

clean: ## remove all that was built (the VM tree stays in the cache)
	rm -rf build
