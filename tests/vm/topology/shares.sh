#!/bin/sh
# Seven cards of a chain that keep step write to the one at its end: all get as much, within two points of 14.3 %.
set -u
orrery-bench-p2p --measure-pattern "7 to 1" >measured || { echo "shares.sh: status $?: $(cat measured)" >&2; exit 1; }
share() { sed -n 's/.*"7 to 1, '"$1"' share","size":null,"samples":\[\([0-9.]*\)\].*/\1/p' measured; }
least=$(share least) largest=$(share largest)
echo "shares of $least to $largest %"
awk -v least="$least" -v largest="$largest" 'BEGIN {
    if (!(least + 0 >= 12.3)) print "shares.sh: the least share is " least " %, 12.3 at least"
    if (!(largest != "" && largest + 0 <= 16.3)) print "shares.sh: the largest share is " largest " %, 16.3 at most"
}' >wrong
[ ! -s wrong ] || { cat wrong measured >&2; exit 1; }
