#!/bin/sh
# planted.sh --list...: what explain says of programs whose limit is known.
set -eu
wrong=0
names=$(planted "$1")
[ "$names" ] || {
    echo "planted $1 names none"
    exit 1
}
for name in $names; do
    orrery-prof record --counters -o /tmp/one.prof -- planted "$name" >/tmp/log 2>&1 || {
        cat /tmp/log
        exit 1
    }
    orrery-prof explain /tmp/one.prof --json >/tmp/one.json
    echo "$name: $(sed -n 's/^ *"verdict": "\(.*\)",*$/\1/p' /tmp/one.json | tr '\n' ';')"
    planted --judge "$name" </tmp/one.json || wrong=$((wrong + 1))
done
[ "$wrong" = 0 ] || {
    echo "$wrong are wrong"
    exit 1
}
