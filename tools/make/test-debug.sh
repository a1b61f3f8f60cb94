#!/bin/bash
# test-debug.sh [REGEX]: builds all and runs the VM tests on the debug kernel, or those whose names match REGEX.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}
tools/make/build.sh --for test release
tools/vm/kbuild.sh --kernel debug
tools/vm/kbuild.sh --kernel debug --source tests/vm/debug/faulty --out build/faulty
source tools/make/lock.sh
hold build/tests/.lock "tests this checkout"
ctest --test-dir build/release --build-config debug-kernel --label-regex '^debug-kernel$' --parallel "$(nproc)" \
    --output-on-failure --no-tests=error ${filter:+--tests-regex "$filter"}
