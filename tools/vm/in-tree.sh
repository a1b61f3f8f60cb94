#!/bin/bash
# Runs a command inside the VM tree, with one directory of the host mounted at /checkout, and another at /tmp/also:
#   in-tree.sh [--also DIRECTORY] DIRECTORY COMMAND [ARGUMENT...]
# Needs root or user namespaces. The mounts live in a mount namespace of their own and vanish with it.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
also=
if [ "${1:-}" = --also ]; then
    also=$(realpath -- "$2")
    shift 2
fi
[ $# -ge 2 ] || { echo "usage: ${0##*/} [--also DIRECTORY] DIRECTORY COMMAND [ARGUMENT...]" >&2; exit 2; }
tree=$("$here/tree.sh" --path)
directory=$(realpath -- "$1")
shift

die() { printf 'in-tree: error: %s\n' "$*" >&2; exit 1; }
for program in mount unshare chroot; do
    command -v "$program" >/dev/null || die "there is no '$program' on this host: run tools/setup/setup.sh"
done
[ -e /proc/self ] || die "/proc is not mounted: mount -t proc proc /proc"
as_root=()
[ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
isolate=(unshare "${as_root[@]}" --mount --propagation)

# In a chroot whose root is no mount point the propagation cannot be changed. That does no harm where mounts do not spread
# anyway, which a look from outside tells: the file must not be seen here.
propagation=private
if ! message=$("${isolate[@]}" private -- true 2>&1); then
    propagation=unchanged
    "${isolate[@]}" unchanged -- true 2>/dev/null ||
        die "cannot make a mount namespace: $message. It needs root (CAP_SYS_ADMIN) or user namespaces, which a chroot has not"
    probe=$(mktemp -d)
    # shellcheck disable=SC2016 # expanded by the inner shell
    "${isolate[@]}" unchanged -- /bin/sh -euc \
        'mount -t tmpfs tmpfs "$1"; : > "$1/inside"; [ ! -e "/proc/$2/root$1/inside" ] || { umount "$1"; exit 1; }' \
        probe "$probe" $$ || shared=yes
    rmdir -- "$probe"
    [ -z "${shared:-}" ] || die "this root directory is no mount point, and mounts made here would show on the host around it:" \
        "enter the chroot through 'unshare --mount chroot DIRECTORY', or bind DIRECTORY to itself before"
fi
# shellcheck disable=SC2016 # expanded by the inner shell
exec "${isolate[@]}" $propagation -- /bin/sh -euc '
    tree=$1 directory=$2 also=$3
    shift 3
    mount --bind "$directory" "$tree/checkout"
    mount --rbind /dev "$tree/dev"
    mount --rbind /proc "$tree/proc"
    mount -t tmpfs tmpfs "$tree/tmp"
    if [ "$also" ]; then
        mkdir "$tree/tmp/also"
        mount --bind "$also" "$tree/tmp/also"
    fi
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 chroot "$tree" "$@"
' in-tree "$tree" "$directory" "$also" "$@"
