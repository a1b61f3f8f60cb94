#!/bin/bash
# recording.sh REPLAY-TIMES FILE: a recording of an earlier release is replayed to its end, or refused by one line before it
# begins; one that goes another way is neither.
set -uo pipefail
said=$("$1" 1 "$2" 2>&1)
status=$?
[ $status = 0 ] && exit 0
echo "$said"
[ $status = 1 ] && [ "$(wc -l <<< "$said")" = 1 ] && [[ $said = *"$(basename -- "$2")"* && $said != *diverged* ]]
