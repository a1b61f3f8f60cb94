#!/bin/bash
# A kernel for which the module does not build is one line with the cause, and its VMs say that line; the module for the other
# kernel is there all the same: kernels.sh ORRERY_VM
set -euo pipefail
vm=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; tail -n 40 "$work"/*.txt >&2; exit 1; }

tree=$("$root/tools/vm/tree.sh" --path)
release() { awk -v name="$1" '$1 == name { print $2 }' "$tree/etc/orrery/kernels"; }
lts=$(release lts) newer=$(release backports)
IFS=.- read -r major minor _ <<< "$newer"

# A module of one file stands for orrery.ko: what is tested is who builds it, and takes minutes for all files.
mkdir "$work/source"
printf 'obj-m := orrery.o\norrery-y := orr_drv.o\n' > "$work/source/Kbuild"
cat > "$work/source/orr_drv.c" << END
// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION($major, $minor, 0)
#error "this kernel is too new"
#endif
MODULE_DESCRIPTION("A kernel that it does not build for");
MODULE_LICENSE("GPL");
END
status=0
"$root/tools/vm/kbuild.sh" --source "$work/source" --out "$work/kmod" > "$work/out.txt" 2> "$work/err.txt" || status=$?
[ $status = 1 ] || fail "status $status, not 1"
[ -e "$work/kmod/$lts/orrery.ko" ] || fail "no module for $lts"
[ ! -e "$work/kmod/$newer/orrery.ko" ] || fail "a module for $newer"
[ "$(grep -c "$newer" "$work/err.txt")" = 1 ] || fail "$newer is not one line"
grep -q "no module for $newer (backports): .*orr_drv.c:.*this kernel is too new.* (log: $work/kmod/$newer/log)" "$work/err.txt" ||
    fail "the line lacks the cause"

# One kernel alone does not look at the other.
"$root/tools/vm/kbuild.sh" --kernel lts --source "$work/source" --out "$work/kmod" > "$work/lts.txt" 2>&1 || fail "lts alone fails"
[ ! -s "$work/lts.txt" ] || fail "lts alone has something to say"

# What the tests of that kernel end with.
status=0
"$vm" --cards 1 --kernel backports --module "$work/kmod/$newer/orrery.ko" --logs "$work/logs" -- true > "$work/vm.txt" 2>&1 || status=$?
[ $status = 121 ] || fail "orrery-vm's status is $status, not 121"
grep -q "no module for $newer (backports): .*this kernel is too new" "$work/vm.txt" || fail "orrery-vm does not tell the cause"
