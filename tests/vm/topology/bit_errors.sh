#!/bin/bash
# bit_errors.sh ORRERY-VM LOGS: what bit_errors_guest.sh finds, and the same model times in another VM.
set -euo pipefail
vm=$1 logs=$2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
for run in 1 2; do
    times[run]=$("$vm" --cards 2 --topology pair --sync lockstep --timeout 240 --logs "$logs/$run" \
        --faults 'seed 7; wire count=all ber=1e-7 corrupt' --file "$here/bit_errors_guest.sh" \
        -- sh -c 'sh bit_errors_guest.sh # links_are histogram umd_vm_test' | grep '^times ')
done
[ "${times[1]}" = "${times[2]}" ] && exit 0
printf 'bit_errors.sh: two runs have two model times\n%s\n%s\n' "${times[@]}" >&2
exit 1
