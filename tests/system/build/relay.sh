#!/bin/bash
# relay.sh passes words on, holds progress back, and speaks when nobody else does.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
said=$(mktemp)
trap 'rm -f -- "$said"' EXIT
{
    for n in $(seq 50); do echo "[$n/60] Building CXX object x$n.o"; done
    echo 'vm tree: installing'
    echo 'progress: packages: unpacking g++'
    for _ in $(seq 600); do
        grep -q 'packages: unpacking g++' "$said" && break
        sleep 0.1
    done
    echo 'progress: packages: '
    printf 'the last words'
} | "$root/tools/make/relay.sh" 1 > "$said"
out=$(cat "$said")
fail() { printf 'FAILED: %s:\n%s\n' "$1" "$out" >&2; exit 1; }
[ "$(grep -c Building <<< "$out")" = 0 ] || fail "progress is not held back"
[ "$(grep -c '^vm tree: installing$' <<< "$out")" = 1 ] || fail "a line is lost"
grep -qE '^ +0:[0-9][0-9] .*programs: 50 of 60 steps' <<< "$out" || fail "silence is not filled"
grep -q 'packages: unpacking g++' <<< "$out" || fail "the other work is not told"
[ "$(tail -n 1 <<< "$out")" = 'the last words' ] || fail "the end is lost"
