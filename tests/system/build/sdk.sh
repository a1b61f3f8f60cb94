#!/bin/bash
# sdk.sh BUILD: what `cmake --install --component sdk` leaves is enough to build a program and a kernel elsewhere.
set -euo pipefail
build=$1
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
cc -std=c11 -Wall -Wextra -Werror -pedantic -I sdk/include -o program program.c -L sdk/lib -lorrery
c++ -std=c++17 -Wall -Wextra -Werror -pedantic -I sdk/include -o owners owners.cc -L sdk/lib -lorrery
export LD_LIBRARY_PATH=$folder/sdk/lib
[ "$(./program)" = "orrSuccess 1" ] || fail "the program prints '$(./program)'"
./owners || fail "the C++ program ends with $?"
unset LD_LIBRARY_PATH
sdk/bin/orrery-cc -v -o kernel.elf kernel.cc 2> commands || { cat commands; fail "orrery-cc ends with an error"; }
grep -q "$folder/sdk/include" commands || fail "orrery-cc does not use the headers beside it: $(cat commands)"
readelf -s kernel.elf | grep -q ' set$' || fail "the module has no kernel"
readelf -d program | grep -q 'liborrery.so.1' || fail "the program is not bound to liborrery.so.1"
