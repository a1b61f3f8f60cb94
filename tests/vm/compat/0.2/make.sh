#!/bin/bash
# make.sh BUILD: how `program`, `kernels.elf` and `run.otrace` were made, once, when 0.2 was released. Not to be run
# again: what is kept here is what users have.
set -euo pipefail
build=$(realpath -- "$1")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
"$build/bin/orrery-cc" -o kernels.elf kernels.cc
clang-19 -std=c11 -O1 -Wall -Wextra -Werror -Wl,-z,now -I"$build/include" program.c -L"$build/lib" -lorrery -s -o program
"$build/bin/orrery-vm" --cards 1 --record recorded -- ./program kernels.elf < /dev/null
mv recorded/card0.otrace run.otrace
rmdir recorded
