#!/bin/bash
# build.sh PRESET [TARGET...]: configures build/PRESET once and builds (all, or the targets).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
preset=$1
shift
directory=build/$preset
if [ ! -e "$directory/build.ninja" ]; then
    echo "==> configuring $directory"
    mkdir -p "$directory"
    cmake --preset "$preset" > "$directory/configure.log" 2>&1 || { cat "$directory/configure.log" >&2; exit 1; }
    echo "==> building $directory"
fi
quiet=()
[ -t 1 ] || quiet=(--quiet) # on a terminal ninja keeps to one line
ninja -C "$directory" "${quiet[@]}" "$@"
