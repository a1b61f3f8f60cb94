#!/bin/bash
# Records a VM's run and replays what every card recorded.
#   record.sh REPLAY-TIMES TIMES FOLDER CARDS COMMAND...   (COMMAND is orrery-vm with its options, among them --record)
set -euo pipefail
replay=$1 times=$2 folder=$3 cards=$4
shift 4
rm -rf "$folder"
"$@"
for ((card = 0; card < cards; ++card)); do
    [ -s "$folder/card$card.otrace" ] || { echo "FAILED: no $folder/card$card.otrace" >&2; exit 1; }
done
"$replay" "$times" "$folder"/card*.otrace
rm -rf "$folder"
