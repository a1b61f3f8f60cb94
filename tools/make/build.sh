#!/bin/bash
# build.sh [--for run|test|once|long|bench] PRESET [TARGET...]: configures build/PRESET and builds (all, or the targets). A build
# directory is configured with what its purposes need, so that `make run` wants no packages of the tests; without --for it is all.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
purpose=bench
if [ "$1" = --for ]; then purpose=$2; shift 2; fi
preset=$1
shift
directory=build/$preset
source tools/make/lock.sh

case $purpose in
    run) tests=OFF bench=OFF twice=OFF all=OFF ;;
    test) tests=ON bench=OFF twice=ON all=OFF ;;
    once) tests=ON bench=ON twice=OFF all=OFF ;;
    long) tests=ON bench=OFF twice=ON all=ON ;;
    bench) tests=ON bench=ON twice=ON all=ON ;;
    *) echo "build.sh: there is no purpose '$purpose'" >&2; exit 2 ;;
esac
# Two runs of ninja in one directory damage what both write.
hold "$directory/.lock" "builds $directory"
# What was configured once stays, whatever this run wants.
has() { grep -q "^$1:BOOL=ON$" "$directory/CMakeCache.txt" 2>/dev/null; }
options=()
for option in "ORRERY_TESTS $tests" "ORRERY_BENCH $bench" "ORRERY_TEST_TWICE $twice" "ORRERY_SANITIZE_ALL $all"; do
    read -r name value <<< "$option"
    if ! has "$name" && { [ $value = ON ] || [ ! -e "$directory/build.ninja" ]; }; then options+=("-D$name=$value"); fi
done
if [ ! -e "$directory/build.ninja" ] || [ ${#options[@]} -gt 0 ]; then
    echo "==> configuring $directory"
    cmake --preset "$preset" "${options[@]}" > "$directory/configure.log" 2>&1 || { cat "$directory/configure.log" >&2; exit 1; }
    echo "==> building $directory"
fi
quiet=()
[ -t 1 ] || [ -n "${ORRERY_PROGRESS:-}" ] || quiet=(--quiet) # relay.sh wants the steps, a log does not
ninja -C "$directory" "${quiet[@]}" "$@"
