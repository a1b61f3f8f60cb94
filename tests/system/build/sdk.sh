#!/bin/bash
# sdk.sh BUILD VERSION: what `cmake --install --component sdk` leaves is enough to build a program and a kernel elsewhere.
set -euo pipefail
build=$1
version=$2
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }

cmake --install "$build" --component sdk --prefix "$folder/sdk" > "$folder/log" || { cat "$folder/log"; exit 1; }
cd -- "$folder"
cat > program.c << END
#include <orrery/graph.h>
#include <orrery/task.h>
#include <stdio.h>
int main(void) {
    uint32_t version = 0;
    orrError_t code = orrGetVersion(&version);
    printf("%s %d\n", orrGetErrorName(code), version >= ORR_VERSION);
    return 0;
}
END
echo '#include <orrery/orrery.hpp>
int main() { return orrery::Stream(orrery::empty) ? 1 : 0; }' > owners.cc
echo '#include <orrery/kernel.h>
ORR_KERNEL void set(uint32_t* words) { words[orr::global_id()] = 1; }' > kernel.cc
export PKG_CONFIG_PATH=$folder/sdk/lib/pkgconfig
pkg-config --exact-version "$version" orrery || fail "pkg-config says $(pkg-config --modversion orrery), not $version"
# shellcheck disable=SC2046 # flags are words
cc -std=c11 -Wall -Wextra -Werror -pedantic $(pkg-config --cflags orrery) -o program program.c $(pkg-config --libs orrery)
c++ -std=c++17 -Wall -Wextra -Werror -pedantic -I sdk/include -o owners owners.cc -L sdk/lib -lorrery
export LD_LIBRARY_PATH=$folder/sdk/lib
[ "$(./program)" = "orrSuccess 1" ] || fail "the program prints '$(./program)'"
./owners || fail "the C++ program ends with $?"
unset LD_LIBRARY_PATH
# The folder may be moved: from here on it is elsewhere.
mv sdk moved
sdk=$folder/moved
export PKG_CONFIG_PATH=$sdk/lib/pkgconfig
# CMake finds it for versions that it keeps its promise to, in each scope that asks, and if it is whole.
mkdir finds
cat > finds/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.25)
project(finds LANGUAGES NONE)
function(set_up_dependencies)
  find_package(orrery REQUIRED)
endfunction()
set_up_dependencies()
find_package(orrery ${wanted} REQUIRED)
if(NOT EXISTS "${ORRERY_CC}" OR NOT TARGET orrery::orrery)
  message(FATAL_ERROR "ORRERY_CC is '${ORRERY_CC}'")
endif()
END
finds() {
    rm -rf found
    cmake -Dwanted="$1" -DCMAKE_PREFIX_PATH="$sdk" -S finds -B found > log 2>&1
}
newer=${version%%.*}.$(($(cut -d. -f2 <<< "$version") + 1))
for wanted in "" 0.2 "$version" "$version;EXACT" 0.1...9.9 "$version...<$newer"; do
  finds "$wanted" || { cat log; fail "CMake does not find $version for '$wanted'"; }
done
for wanted in 0 0.1 "$newer" 9.0 0.1...0.1.9 "0.1...<$version" "$newer...9.9" "0.1;EXACT"; do
  ! finds "$wanted" || fail "CMake finds $version for '$wanted'"
  grep -q "requested" log || { cat log; fail "CMake fails otherwise for '$wanted'"; }
done
for part in lib/liborrery.so bin/orrery-cc include/orrery/orrery.h; do
  mv "$sdk/$part" part
  ! finds "" || fail "CMake finds an SDK without $part"
  tr -s '[:space:]' ' ' < log | grep "$part is not there" > /dev/null || { cat log; fail "CMake does not say that $part is missing"; }
  mv part "$sdk/$part"
done
# The page's program, by its commands for pkg-config and by its lines for CMake.
page=$root/docs/own-program.md
block() { sed -n '/^## With pkg-config or CMake/,$p' "$page" | sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}"; }
mkdir page
cd page
awk '/^```cpp$/ { getline name; sub("// ", "", name); next } /^```/ { name = "" } name { print > name }' "$page"
block sh | sed "s|DIR|$sdk|" > commands
grep -q pkg-config commands || fail "the page has no commands for pkg-config"
bash -eu commands || fail "the page's commands do not build its program"
readelf -d gemm | grep 'liborrery.so.1' > /dev/null || fail "the page's program is not bound to liborrery.so.1"
{ echo 'cmake_minimum_required(VERSION 3.25)
project(gemm LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)'; block cmake; } > CMakeLists.txt
{ cmake -DCMAKE_PREFIX_PATH="$sdk" -B out . && cmake --build out; } > log 2>&1 || { cat log; fail "CMake does not build the page's program"; }
ldd out/gemm | grep "$sdk/lib/liborrery.so.1" > /dev/null || fail "the program of CMake finds another library: $(ldd out/gemm)"
readelf -s out/gemm_kernel.elf | grep ' gemm$' > /dev/null || fail "CMake made no kernel"
# They run, as far as it goes without a card.
"$sdk/bin/orrery-cc" -o gemm.elf gemm_kernel.cc
runs() { grep -qE '^gemm: .*orrErrorNoDevice|correct$' <<< "$1" || fail "the page's program prints '$1'"; }
runs "$(LD_LIBRARY_PATH=$sdk/lib ./gemm gemm.elf 2>&1)"
runs "$(out/gemm gemm.elf 2>&1)"
echo '#error "changed"' >> gemm.h
! cmake --build out --target gemm_kernel > log 2>&1 || fail "the kernel is not made again for its header"
cd ..
# Kernels inside a program that is built elsewhere: several, each with options of its own.
mkdir inside
cd inside
cat > kernel.cc << 'END'
#include <orrery/kernel.h>
ORR_KERNEL void NAME(uint32_t* words) { words[orr::global_id()] = 1; }
END
cat > main.cc << 'END'
#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.h>
#include <string_view>
ORR_EMBEDDED_KERNEL(first);
ORR_EMBEDDED_KERNEL(second);
namespace {
bool holds(std::span<const std::byte> image, std::string_view name) {
    const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
    return orrModuleCheckData(image.data(), image.size()) == orrSuccess && text.find(name) != text.npos;
}
}  // namespace
int main() { return holds(first_image(), "this_one") && holds(second_image(), "that_one") ? 0 : 1; }
END
cat > CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.25)
project(inside LANGUAGES CXX)
find_package(orrery 0.3 REQUIRED)
add_executable(inside main.cc)
target_link_libraries(inside PRIVATE orrery::orrery)
orrery_kernel(first kernel.cc OPTIONS -DNAME=this_one)
orrery_kernel(second kernel.cc OPTIONS -DNAME=that_one -march=rv64gcv)
orrery_embed_kernel(inside first second ${more})
END
{ cmake -DCMAKE_PREFIX_PATH="$sdk" -B out . && cmake --build out; } > log 2>&1 || { cat log; fail "CMake does not build a program with kernels inside"; }
out/inside || fail "the program has other kernels inside"
! cmake -Dmore=my-kernel -DCMAKE_PREFIX_PATH="$sdk" -B wrong . > log 2>&1 || fail "my-kernel is taken as a name of C++"
grep -q "my-kernel becomes a name" log || { cat log; fail "CMake does not say what is wrong with my-kernel"; }
cd ..
"$sdk/bin/orrery-cc" -v -o kernel.elf kernel.cc 2> commands || { cat commands; fail "orrery-cc ends with an error"; }
grep -q "$sdk/include" commands || fail "orrery-cc does not use the headers beside it: $(cat commands)"
readelf -s kernel.elf | grep ' set$' > /dev/null || fail "the module has no kernel"
readelf -d program | grep 'liborrery.so.1' > /dev/null || fail "the program is not bound to liborrery.so.1"
