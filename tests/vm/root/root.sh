#!/bin/bash
# orrery-vm --root debian: root.sh BUILD LOGS
# Needs the image, which `make test-root` makes; make test does not come here.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath -- "$1") logs=$2
vm=$build/bin/orrery-vm
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
image=$("$here/../../../tools/vm/root.sh" --path debian)
before=$(sha256sum < "$image/image.squashfs")

mkdir -p "$work/data/deep" "$work/share"
echo content > "$work/data/deep/file"
for kernel in lts backports; do
    rm -f "$work/share/out"
    "$vm" --root debian --kernel $kernel --cards 2 --timeout 240 --logs "$logs/$kernel" --file "$here/guest.sh:/root/guest.sh" \
        --file "$work/data" --share "$work/share" -- sh /root/guest.sh '# histogram' < /dev/null || fail "$kernel"
    [ "$(cat "$work/share/out")" = 'from the guest' ] || fail "$kernel: the share"
done

# A program of one's own, as another user, with stdin; its status comes back.
chmod 755 "$work"
cd "$work"
printf '#include <stdio.h>\nint main() { int c; while ((c = getchar()) != EOF) putchar(c); return 7; }\n' > own.c
cc -o own own.c
status=0
printed=$("$vm" --root debian --user 1000 --timeout 240 --logs "$logs/own" -- \
    sh -c 'id -u; id -Gn | tr " " "\n" | grep render; pwd; ./own' <<< 'through stdin') || status=$?
[ $status = 7 ] || fail "status $status instead of 7"
[ "$printed" = $'1000\nrender\n'"$work"$'\nthrough stdin' ] || fail "printed: $printed"

# Nothing of all this is in the image.
[ "$(sha256sum < "$image/image.squashfs")" = "$before" ] || fail "the image has changed"

status=0
"$vm" --root debian --kernel debug --dry-run -- true > /dev/null 2>&1 || status=$?
if [ $status = 0 ]; then # there is a debug kernel
    "$vm" --root debian --kernel debug --no-module --cards 0 --logs "$logs/debug" -- true 2> "$work/refused" && fail "on the debug kernel"
    grep -q 'has no virtio_blk, which --root needs' "$work/refused" || fail "$(cat "$work/refused")"
fi
