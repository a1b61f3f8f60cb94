#!/bin/bash
# test-long.sh [REGEX]: builds all, with sanitizers too, and runs the tests that are too long for `make test` (label long) and
# those that it runs with sanitizers only (label twice), or those of them whose names match REGEX.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}
tools/make/prepare.sh all sh -ec 'tools/make/build.sh --for test release; tools/make/build.sh --for long asan'
source tools/make/ctest.sh
run_ctest "release asan" --build-config long --label-regex '^(long|twice)$' ${filter:+--tests-regex "$filter"}
