#!/bin/bash
# Two runs in one checkout: one builds, the other says that it waits, and then builds.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
export work
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; tail -n 40 "$work"/*.txt >&2; exit 1; }

mkdir -p "$work/checkout/tools" "$work/bin"
cp -r "$root/tools/make" "$work/checkout/tools/"
cat > "$work/bin/cmake" << 'END'
#!/bin/sh
touch build/release/build.ninja
END
cat > "$work/bin/ninja" << 'END'
#!/bin/sh
echo begin >> ninja.txt
# Until the other two have said that they wait.
for _ in $(seq 1200); do
    [ "$(cat "$work"/run*.txt | grep -c 'another run builds build/release; waiting')" = 2 ] && break
    sleep 0.05
done
echo end >> ninja.txt
END
chmod +x "$work/bin"/*
PATH=$work/bin:$PATH
runs=()
for run in 1 2 3; do
    "$work/checkout/tools/make/build.sh" --for run release > "$work/run$run.txt" 2>&1 &
    runs+=($!)
done
for run in "${runs[@]}"; do wait "$run" || fail "a run fails"; done
[ "$(tr '\n' ' ' < "$work/checkout/ninja.txt")" = "begin end begin end begin end " ] || fail "two at once"
[ "$(cat "$work"/run*.txt | grep -c 'another run builds build/release; waiting')" = 2 ] || fail "who waits does not say so"
