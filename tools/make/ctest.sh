# run_ctest "PRESET..." ARGUMENT...: one ctest run over all these build directories: one list, one closing line, one exit
# status. Tests have directories of their own below build, which they clear. Sourced.
# shellcheck shell=bash
source tools/make/lock.sh

run_ctest() {
    local preset
    hold build/tests/.lock "tests this checkout"
    for preset in $1; do echo "subdirs(\"$PWD/build/$preset\")"; done > build/tests/CTestTestfile.cmake
    shift
    ctest --test-dir build/tests --parallel "$(nproc)" --output-on-failure --no-tests=error "$@" | tools/make/relay.sh
}
