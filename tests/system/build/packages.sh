#!/bin/bash
# The lists of packages: each package once and with a reason, and docs/dependencies.md made from them.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
cd "$root/tools/setup"
./dependencies.sh --check
for list in packages/*.txt; do
    grep -qF "<!-- table: tools/setup/$list -->" "$root/docs/dependencies.md" || { echo "FAILED: no table of $list"; exit 1; }
done
twice=$(awk '/^#/ || !NF { next } NF < 2 { print $1 } seen[$1]++ { print $1 }' packages/*.txt)
[ -z "$twice" ] || { echo "FAILED: named twice or without a reason:" $twice; exit 1; }
! ./setup.sh --check nonsense 2> /dev/null || { echo "FAILED: a purpose that does not exist"; exit 1; }
