#!/bin/bash
# Records a VM's run and replays what every card recorded.
#   record.sh REPLAY-TIMES FOLDER CARDS COMMAND...   (COMMAND is orrery-vm with its options)
set -euo pipefail
replay=$1 folder=$2 cards=$3
shift 3
rm -rf "$folder"
"$@"
for ((card = 0; card < cards; ++card)); do
    [ -s "$folder/card$card.otrace" ] || { echo "FAILED: no $folder/card$card.otrace" >&2; exit 1; }
done
"$replay" 100 "$folder"/card*.otrace
rm -rf "$folder"
