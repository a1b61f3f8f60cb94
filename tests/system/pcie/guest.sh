#!/bin/bash
# The test card in a VM: guest.sh ORRERY_VM TEST_CARD GUEST_TEST MODE VECTORS LOGS
# The driver is the kernel's own vfio-pci behind an emulated IOMMU, so this sees the PCIe function alone, without
# orrery.ko. MODE is the card's interrupt mode, VECTORS the number that the guest must find.
set -euo pipefail
[ $# = 6 ] || { echo "usage: ${0##*/} ORRERY_VM TEST_CARD GUEST_TEST MODE VECTORS LOGS" >&2; exit 2; }
vm=$1 card=$2 program=$3 mode=$4 vectors=$5 logs=$6
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
tree=$("$root/tools/vm/tree.sh")
release=$(awk '$1 == "lts" { print $2 }' "$tree/etc/orrery/kernels")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# In the order of loading, each with what it needs.
load=
files=()
for name in vfio vfio_iommu_type1 vfio-pci-core vfio-pci; do
    # irqbypass is a module of its own and comes first.
    # shellcheck disable=SC2013 # paths without blanks, one a word
    for path in $(awk -F: -v m="/$name.ko.xz" 'index($1, m) && substr($1, length($1) - length(m) + 1) == m {
            n = split($2, d, " "); for (i = n; i > 0; i--) print d[i]; print $1 }' \
        "$tree/lib/modules/$release/modules.dep"); do
        file=$(basename -- "$path" .xz)
        [ -e "$work/$file" ] && continue
        xz -dc -- "$tree/lib/modules/$release/$path" > "$work/$file"
        files+=(--file "$work/$file:/root/$file")
        load+="insmod /root/$file && "
    done
done
[ ${#files[@]} -ge 8 ] || { echo "the VM tree has no vfio modules for $release" >&2; exit 1; }

"$vm" --no-module --viommu --irq "$mode" --card-program "$card" --file "$program:/root/guest_test" \
    "${files[@]}" --env "VECTORS=$vectors" --timeout 270 --logs "$logs" -- \
    sh -c "$load exec /root/guest_test"
