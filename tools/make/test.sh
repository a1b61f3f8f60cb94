#!/bin/bash
# test.sh [REGEX]: builds all and runs the tests, or those of the release build whose names match REGEX.
# Without a REGEX the tests of the build with ASan and UBSan run too, but for tools that read recordings and scenarios:
# test-long.sh has those.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}

presets=(release)
[ -n "$filter" ] || presets+=(asan)
# The release build has the benchmarks too: what nobody compiles breaks unseen.
# shellcheck disable=SC2016 # expanded by the inner shell
tools/make/prepare.sh all sh -ec 'purpose=bench; for preset; do tools/make/build.sh --for "$purpose" "$preset"; purpose=test; done' \
    build "${presets[@]}"

# Tests have directories of their own below build, which they clear.
source tools/make/lock.sh
hold build/tests/.lock "tests this checkout"
# One ctest run over all build directories: one list, one closing line, one exit status.
for preset in "${presets[@]}"; do echo "subdirs(\"$PWD/build/$preset\")"; done > build/tests/CTestTestfile.cmake
ctest --test-dir build/tests --parallel "$(nproc)" --output-on-failure --no-tests=error ${filter:+--tests-regex "$filter"} |
    tools/make/relay.sh
