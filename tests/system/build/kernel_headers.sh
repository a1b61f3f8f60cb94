#!/bin/bash
# kernel_headers.sh ORRERY_CC: orrery_kernel() makes a kernel again when a header that it includes has changed, and
# only then.
set -euo pipefail
cc=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"

cat > CMakeLists.txt << END
cmake_minimum_required(VERSION 3.25)
project(kernels LANGUAGES NONE)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY \${CMAKE_BINARY_DIR}/bin)
file(MAKE_DIRECTORY \${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
add_executable(orrery-cc IMPORTED)
set_target_properties(orrery-cc PROPERTIES IMPORTED_LOCATION "$cc")
include($root/tools/cc/orrery_kernel.cmake)
orrery_kernel(add add.cc other.cc OPTIONS -O1)
END
echo '#include "second.h"' > other.cc
echo '#pragma once' > second.h
echo '#include "shared.h"
ORR_KERNEL void add(const Args* args) { args->y[orr::global_id()] += args->x; }' > add.cc
header() { printf '#pragma once\n#include <orrery/kernel.h>\nstruct Args { %s };\n' "$1" > shared.h; }

header 'uint32_t* y; uint32_t x;'
cmake -G Ninja -B build > configure.log || { cat configure.log; exit 1; }
built() { ninja -C build > build.log || { cat build.log; exit 1; }; sha256sum < build/bin/add.elf; }
first=$(built)
[ "$(built)" = "$first" ] && grep -q 'no work to do' build.log || { echo "it is made again for nothing:"; cat build.log; exit 1; }
header 'uint32_t x; uint32_t* y;'
touch -d '+2 seconds' shared.h # ninja compares times, and a file system's clock can be coarse
[ "$(built)" != "$first" ] || { echo "a header has changed and the kernel has not been made again:"; cat build.log; exit 1; }
second=$(built)
echo 'extern int unused;' >> second.h
touch -d '+4 seconds' second.h
built > again; grep -q 'Compiling kernel' build.log ||
    { echo "a header of the second file has changed and the kernel has not been made again:"; cat build.log; exit 1; }
[ "$(cat again)" = "$second" ] || { echo "a declaration has changed the kernel"; exit 1; }
grep -q "kernel_abi.h" build/bin/add.elf.d 2> /dev/null || ninja -C build -t deps bin/add.elf | grep 'kernel_abi.h' > /dev/null ||
    { echo "orrery/hw/kernel_abi.h is not among the headers"; exit 1; }
