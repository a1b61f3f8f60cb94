#!/bin/bash
# record.sh: records the gallery anew with the firmware of build/release, and puts the output of every command of
# README.md, of docs/stepping.md and of docs/first-change.md into them. What the pages say about the output must be
# read again afterwards. The recording over two cards needs a VM (make run has everything that it takes); --no-vm
# leaves it as it is.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
bin=../../build/release/bin

for scenario in priority-inversion preemption deadlock unfair-weights; do
    # Some end with work left over, which is what they show.
    said=$("$bin/orrery-step" run "$scenario.toml" -o "$scenario.otrace" 2>&1) || [[ $said == *"NOT DONE"* ]]
done
if [ "${1:-}" != --no-vm ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$bin/orrery-vm" --cards 2 --record "$folder" -- histogram > /dev/null
    mv "$folder/card0.otrace" two-cards-0.otrace
    mv "$folder/card1.otrace" two-cards-1.otrace
fi

# A block ```console holds commands behind "$ ", each with its output up to the next one.
export PATH="$PWD/$bin:$PATH"
in_block=false
while IFS= read -r line; do
    case $line in
        '```console') in_block=true ;;
        '```') in_block=false ;;
        '$ '*)
            printf '%s\n' "$line"
            bash -c "${line#\$ }" 2>&1 | sed 's/[[:space:]]*$//' || true
            continue ;;
        *) if $in_block; then continue; fi ;;
    esac
    printf '%s\n' "$line"
done < README.md > README.new
mv README.new README.md
# The guide's recordings and transcripts too.
../../tests/system/step/transcript.sh --record "$bin/orrery-step"
../../tests/system/step/first_change.sh --write ../../build/release
ls -l -- *.otrace
