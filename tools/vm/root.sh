#!/bin/bash
# Images of a small Debian 13 for `orrery-vm --root NAME`, where NAME is debian, or debian+PACKAGE+PACKAGE with more of
# Debian's packages.
#   root.sh NAME          make it if it is not there; its directory on stdout, progress on stderr
#   root.sh --path NAME   its directory; fails if it is not there
# The directory lies beside the VM tree under the key of its recipe, and holds image.squashfs (read-only, whoever boots it)
# and files (a list of what is in it). See docs/vm.md.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
suite=trixie
source "$here/to_the_end.sh"

say() { printf 'root image: %s\n' "$*" >&2; }
die() { printf 'root image: error: %s\n' "$*" >&2; exit 1; }

check_name() {
    [[ $name =~ ^debian(\+[a-z0-9][a-z0-9.-]+)*$ ]] ||
        die "'$name' is no image: debian, or debian+PACKAGE+PACKAGE… with names of Debian packages"
}

# Raise the format number when this script makes something else from the same recipe. The order of the packages that a
# name adds makes no difference.
key() {
    { echo "format 1 $suite"; cat "$here/root/packages.txt"; tr '+' '\n' <<< "$name" | sort -u; } | sha256sum | cut -c1-16
}

make_image() {
    local uri mode=root keyring=/usr/share/keyrings/debian-archive-keyring.gpg packages options=() started=$SECONDS
    for program in mmdebstrap sqfstar; do
        command -v $program > /dev/null || die "$program is not installed: run tools/setup/setup.sh run root"
    done
    uri=$("$here/tree.sh" --mirror)
    mapfile -t options < <("$here/tree.sh" --proxy)
    [ "$(id -u)" = 0 ] || mode=unshare
    packages=$({ awk '!/^#/ && NF { print $1 }' "$here/root/packages.txt"; tr '+' '\n' <<< "$name" | tail -n +2; } | paste -sd,)
    work=$(mktemp -d "$directory.new.XXXXXX")
    log=$directory.log
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    mkdir "$work/out"
    say "making $name from $uri ($suite), once"
    # orrery-vm gives the cards' nodes to this group, whose number it knows.
    # shellcheck disable=SC2016 # $1 is mmdebstrap's
    TMPDIR=/var/tmp mmdebstrap --mode=$mode --variant=minbase --format=tar --include="$packages" "${options[@]}" \
        --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        --customize-hook='chroot "$1" groupadd --system --gid 105 render' \
        "$suite" - "deb [signed-by=$keyring] $uri $suite main" 2> "$log" |
        to_the_end sqfstar -quiet -no-progress -comp lz4 "$work/out/image.squashfs" >> "$log" || {
        grep -m 3 -E '^E: |error' "$log" >&2 || true
        die "$name was not made; the whole log is $log"
    }
    unsquashfs -lls -no-progress "$work/out/image.squashfs" | sed -n 's,.* squashfs-root\(/[^ ]*\).*,\1,p' > "$work/out/files"
    grep -q '^/usr/bin/bash$' "$work/out/files" || die "$name was not made: its archive is not whole; the log is $log"
    mv -T -- "$work/out" "$directory"
    rm -rf -- "$work" "$log"
    trap - EXIT INT TERM HUP
    say "ready: $name, $(($(stat --format=%s "$directory/image.squashfs") >> 20)) MiB, $((SECONDS - started)) s"
}

asked=image
if [ "${1:-}" = --path ]; then asked=path; shift; fi
[ $# -eq 1 ] || die "give the name of an image; see the first lines of $0"
name=$1
check_name
directory=${XDG_CACHE_HOME:-$HOME/.cache}/orrery/root-debian-$(key)
if [ ! -e "$directory/files" ]; then
    [ $asked = image ] || die "there is no image '$name': make it with 'make root ROOT=$name'"
    mkdir -p "$(dirname -- "$directory")"
    exec 9> "$directory.lock"
    if ! flock --nonblock 9; then
        say "another run is making it; waiting for that"
        flock 9
    fi
    [ -e "$directory/files" ] || make_image 9>&9
fi
echo "$directory"
