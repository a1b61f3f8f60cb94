#!/bin/bash
# Runs a command inside the VM tree, with one directory of the host mounted at /checkout:
#   in-tree.sh DIRECTORY COMMAND [ARGUMENT...]
# Needs root or user namespaces. The mounts live in a mount namespace of their own and vanish with it.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 2 ] || { echo "usage: ${0##*/} DIRECTORY COMMAND [ARGUMENT...]" >&2; exit 2; }
tree=$("$here/tree.sh" --path)
directory=$(realpath -- "$1")
shift

as_root=()
[ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare "${as_root[@]}" --mount --propagation private -- /bin/sh -euc '
    tree=$1 directory=$2
    shift 2
    mount --bind "$directory" "$tree/checkout"
    mount --rbind /dev "$tree/dev"
    mount --rbind /proc "$tree/proc"
    mount -t tmpfs tmpfs "$tree/tmp"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 chroot "$tree" "$@"
' in-tree "$tree" "$directory" "$@"
