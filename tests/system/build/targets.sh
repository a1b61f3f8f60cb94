#!/bin/bash
# What the Makefile's targets hand to a script is built by the same target: targets.sh BUILD_DIRECTORY
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
build=$1
fail() { echo "FAILED: $1" >&2; exit 1; }

# The programs that rounds.sh takes from beside orrery-vm, and orrery-vm itself.
mapfile -t wanted < <(grep -o '[(]dirname -- "[$]vm")/[a-z_]*' "$root/tests/vm/kill/rounds.sh" | sed 's|.*/||' | sort -u)
[ ${#wanted[@]} -ge 3 ] || fail "rounds.sh names no programs"
recipe=$(make -C "$root" --dry-run --no-print-directory test-kill)
targets=$(sed -n 's|.*build.sh --for test release ||p' <<< "$recipe")
[ -n "$targets" ] || fail "test-kill does not build with the tests: $recipe"
# shellcheck disable=SC2086 # a list of words
made=$(ninja -C "$build" -t commands $targets)
for program in orrery-vm "${wanted[@]}"; do
    grep -q -- "-o bin/$program " <<< "$made" || fail "'make test-kill' does not build $program"
done
