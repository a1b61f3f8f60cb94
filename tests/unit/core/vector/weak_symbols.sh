#!/bin/bash
# weak_symbols.sh OBJECT...: of the objects made for AVX2 and AVX-512 none defines a weak symbol. The linker may take
# that for the same one of an object made for any host, which would then not run on a host without them.
set -euo pipefail
objects=()
for object in "$@"; do
    case $object in *_avx2.cc.*|*_avx512.cc.*) objects+=("$object") ;; esac
done
[ ${#objects[@]} -ge 2 ] || { echo "no objects for AVX2 and AVX-512 among $# files" >&2; exit 1; }
weak=$(nm -A -C --defined-only "${objects[@]}" | grep -E ' [WVu] ' || true)
[ -z "$weak" ] || { echo "$weak" >&2; exit 1; }
