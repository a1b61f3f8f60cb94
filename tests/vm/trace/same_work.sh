#!/bin/bash
# same_work.sh WORK-OF ORRERY-VM ORRERY-STEP FOLDER CARDS OPTION...: the same plays on cards that keep step in two VMs, the
# second beside processes that take the host's CPUs. What the cards have recorded of their work is the same, byte for
# byte; and of two cards `path` goes back over all handovers of the second play.
set -euo pipefail
work_of=$1 vm=$2 step=$3 folder=$4 cards=$5
options=("${@:6}")
rm -rf "$folder"
mkdir -p "$folder"
fail() { echo "FAILED: $*; see $folder" >&2; exit 1; }
busy=()
trap '[ ${#busy[@]} = 0 ] || kill "${busy[@]}"' EXIT
play() { # NAME
    "$vm" --cards "$cards" --sync lockstep --memory 2G --timeout 600 --record "$folder/$1" --logs "$folder/$1/logs" \
        "${options[@]}" -- umd_vm_test --gtest_filter=InStep.ACrowd:InStep.APlay >"$folder/$1.out" 2>&1 ||
        fail "the VM: $(tail -n 5 "$folder/$1.out")"
    local card files=()
    for ((card = 0; card < cards; ++card)); do files+=("$folder/$1/card$card.otrace"); done
    "$work_of" "${files[@]}" >"$folder/$1.work" || fail "$1: that is no play"
}
play quiet
for ((n = 0; n < $(nproc); ++n)); do
    (while :; do :; done) &
    busy+=($!)
done
play beside
kill -0 "${busy[@]}" || fail "the host was not busy"
cmp "$folder/quiet.work" "$folder/beside.work" ||
    fail "it did not do the same at the same times: $(diff "$folder/quiet.work" "$folder/beside.work" | head -n 20)"

# Of two cards only one can have sent what the other heard: with more, semaphores of the first play have had the same
# addresses and values.
if [ "$cards" = 2 ]; then
    "$step" --json "$folder"/beside/card?.otrace -c 'card 0' -c 'goto end' -c 'back until event.type == wake' -c path \
        >"$folder/path" || fail "orrery-step: $(tail -n 1 "$folder/path")"
    found=$(grep -o '"kind":"link","card":[0-9]*' "$folder/path" | sed 's/.*://' | tr '\n' ' ')
    [ "$found" = "1 0 1 0 1 0 1 0 " ] || fail "the path back goes over signals of cards $found, not over 4 rounds"
fi
rm -rf "$folder"
