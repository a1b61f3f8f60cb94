#!/bin/bash
# test-debug.sh [REGEX]: builds all and runs the VM tests on the debug kernel, or those whose names match REGEX.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}
tools/make/build.sh --for test release
tools/vm/kbuild.sh --kernel debug
tools/vm/kbuild.sh --kernel debug --source tests/vm/debug/faulty --out build/faulty
source tools/make/ctest.sh
run_ctest release --build-config debug-kernel --label-regex '^debug-kernel$' ${filter:+--tests-regex "$filter"}
