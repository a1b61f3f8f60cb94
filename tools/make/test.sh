#!/bin/bash
# test.sh [REGEX]: builds all and runs the tests, or those of the release build whose names match REGEX.
# Without a REGEX the tests of the build with ASan and UBSan run too; those that are too long do not, nor in the release build
# what the other one has as well (label twice): test-long.sh.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}

presets=(release)
[ -n "$filter" ] || presets+=(asan)
# The release build has the benchmarks too: what nobody compiles breaks unseen.
first=once
[ -z "$filter" ] || first=bench
# shellcheck disable=SC2016 # expanded by the inner shell
tools/make/prepare.sh all sh -ec 'purpose=$0; for preset; do tools/make/build.sh --for "$purpose" "$preset"; purpose=test; done' \
    "$first" "${presets[@]}"

source tools/make/ctest.sh
if [ -n "$filter" ]; then
    run_ctest "${presets[*]}" --build-config long --tests-regex "$filter"
else
    run_ctest "${presets[*]}" --label-exclude '^(long|twice)$'
fi
