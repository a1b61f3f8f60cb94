#!/bin/bash
# recording.sh REPLAY-TIMES FILE: a recording of an earlier release does what FILE.expect says: `replays`, or the one
# line by which it is refused before it begins. To change that file is to decide about what users have recorded.
set -uo pipefail
expected=$(< "$2.expect") || exit 1
cd -- "$(dirname -- "$2")" || exit 1
said=$("$1" 1 "$(basename -- "$2")" 2>&1)
status=$?
echo "exit status $status: $said"
if [ "$expected" = replays ]; then
  [ $status = 0 ]
else
  [ $status = 1 ] && [ "$said" = "$expected" ]
fi
