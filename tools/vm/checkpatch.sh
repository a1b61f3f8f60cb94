#!/bin/bash
# Runs the kernel's checkpatch over the driver's sources, or over the FILEs given (paths inside the checkout).
# The contract below kmod/include is formatted by .clang-format, to 110 columns, and has no BIT() in user space.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
cd -- "$root"
if [ $# = 0 ]; then
    mapfile -t files < <(find kmod -type f -name '*.[ch]' | sort)
else
    files=("$@")
fi
[ ${#files[@]} -gt 0 ] || { echo "checkpatch: no sources in $root/kmod" >&2; exit 1; }
exec "$here/in-tree.sh" "$root" /bin/sh -ec 'cd /checkout; exec perl /usr/share/checkpatch/checkpatch.pl "$@"' checkpatch \
    --no-tree --strict --terse --no-summary --show-types --max-line-length=110 --ignore BIT_MACRO --file "${files[@]}"
