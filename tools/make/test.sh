#!/bin/bash
# test.sh [REGEX]: builds all and runs the tests, or those of the release build whose names match REGEX.
# Without a REGEX the tests of the build with ASan and UBSan run too.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
filter=${1:-}

presets=(release)
[ -n "$filter" ] || presets+=(asan)
for preset in "${presets[@]}"; do
    [ -n "$filter" ] || echo "==> building $preset"
    tools/make/build.sh "$preset"
done
tools/vm/kbuild.sh

# One ctest run over all build directories: one list, one closing line, one exit status.
mkdir -p build/tests
for preset in "${presets[@]}"; do echo "subdirs(\"$PWD/build/$preset\")"; done > build/tests/CTestTestfile.cmake
ctest --test-dir build/tests --parallel "$(nproc)" --output-on-failure --no-tests=error ${filter:+--tests-regex "$filter"}
