#!/bin/bash
# test.sh [REGEX]: builds all and runs the tests, or those of the release build whose names match REGEX.
# Without a REGEX the tests of the build with ASan and UBSan run too, and those that are too long do not: test-long.sh.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}

presets=(release)
[ -n "$filter" ] || presets+=(asan)
# The release build has the benchmarks too: what nobody compiles breaks unseen.
# shellcheck disable=SC2016 # expanded by the inner shell
tools/make/prepare.sh all sh -ec 'purpose=bench; for preset; do tools/make/build.sh --for "$purpose" "$preset"; purpose=test; done' \
    build "${presets[@]}"

source tools/make/ctest.sh
run_ctest "${presets[*]}" ${filter:+--build-config long --tests-regex "$filter"}
