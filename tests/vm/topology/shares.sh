#!/bin/sh
# Seven cards of a chain that keep step write to the one at its end: all get as much, within two points of 14.3 %.
set -u
orrery-bench-p2p --measure-pattern "7 to 1" >measured || { echo "shares.sh: status $?: $(cat measured)" >&2; exit 1; }
awk '
    { least = $0; sub(/.*"7 to 1, least share","size":null,"samples":\[/, "", least); sub(/\].*/, "", least) }
    END { if (!(least + 0 >= 12.3)) { print "shares.sh: the least share is " least " %, 12.3 at least"; exit 1 } }
' measured >wrong || { cat wrong measured >&2; exit 1; }
