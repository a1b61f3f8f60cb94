#!/bin/sh
# Runs as mmdebstrap's customize-hook, outside the new tree, with its path as $1.
# linux-image-amd64 exists in the stable suite and in backports, and only one version of a package can be
# installed; what the two versions depend on has different names, so both kernels fit into one tree.
set -eu
root=$1
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"

# What the stable (or backports) version of meta-package $1 depends on, if its name starts with $2 and a digit.
concrete() {
    apt-cache show "$1" | awk -v meta="$1" -v want="$2" -v suite="$3" '
        BEGIN { RS = ""; FS = "\n" }
        {
            version = ""; depends = ""
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^Version: /) version = substr($i, 10)
                if ($i ~ /^Depends: /) depends = substr($i, 10)
            }
            if ((version ~ /~bpo/) != (suite == "backports")) next
            n = split(depends, d, /, */)
            for (i = 1; i <= n; i++) {
                split(d[i], word, " ")
                if (index(word[1], want) == 1 && substr(word[1], length(want) + 1) ~ /^[0-9]/) { print word[1]; exit }
            }
        }'
}

packages=
mkdir -p "$root/etc/orrery"
: > "$root/etc/orrery/kernels"
for suite in stable backports; do
    image=$(concrete linux-image-amd64 linux-image- $suite)
    headers=$(concrete linux-headers-amd64 linux-headers- $suite)
    if [ -z "$image" ] || [ -z "$headers" ]; then
        echo "E: the mirror's $suite suite has no linux-image-amd64 or linux-headers-amd64 that names a kernel" >&2
        exit 1
    fi
    packages="$packages $image $headers"
    case $suite in stable) name=lts ;; *) name=backports ;; esac
    echo "$name ${image#linux-image-}" >> "$root/etc/orrery/kernels"
done
# shellcheck disable=SC2086 # a list of package names
apt-get --yes -o DPkg::Chroot-Directory="$root" --no-install-recommends install $packages

while read -r name release; do
    if [ ! -e "$root/boot/vmlinuz-$release" ] || [ ! -d "$root/usr/src/linux-headers-$release" ]; then
        echo "E: kernel '$name' ($release) is not complete in the tree" >&2
        exit 1
    fi
    chroot "$root" depmod "$release"
done < "$root/etc/orrery/kernels"

unpack=$(mktemp -d)
trap 'rm -rf "$unpack"' EXIT

# perf of the newer kernel, beside that of packages.txt: the package has one name in both suites. It wants no library
# that the other does not; without it, or if that changes, the newer kernel gets the older perf.
newer=$(apt-cache madison linux-perf | awk '$3 ~ /~bpo/ { print $3; exit }')
release=$(awk '$1 == "backports" { print $2 }' "$root/etc/orrery/kernels")
if [ -n "$newer" ] && (cd "$unpack" && apt-get download "linux-perf=$newer"); then
    mkdir -p "$root/usr/libexec/orrery"
    dpkg-deb --fsys-tarfile "$unpack"/linux-perf_*.deb |
        tar --extract --to-stdout ./usr/bin/perf > "$root/usr/libexec/orrery/perf-$release"
    chmod 755 "$root/usr/libexec/orrery/perf-$release"
    if chroot "$root" ldd "/usr/libexec/orrery/perf-$release" | grep 'not found'; then
        rm "$root/usr/libexec/orrery/perf-$release"
    fi
    rm -f "$unpack"/*.deb
fi

# checkpatch is in no binary package; it comes out of the stable kernel's source.
source=$(apt-cache depends linux-source | awk '$1 == "Depends:" && $2 ~ /^linux-source-[0-9.]+$/ { print $2; exit }')
(cd "$unpack" && apt-get download "$source") ||
    { echo "E: cannot download ${source:-linux-source}, which checkpatch comes from" >&2; exit 1; }
mkdir -p "$root/usr/share/checkpatch"
dpkg-deb --fsys-tarfile "$unpack"/*.deb | tar --extract --to-stdout --wildcards '*/linux-source-*.tar.xz' |
    xz --decompress --stdout --threads=0 |
    tar --extract --directory="$root/usr/share/checkpatch" --strip-components=2 --wildcards \
        '*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch'
test -s "$root/usr/share/checkpatch/checkpatch.pl"
