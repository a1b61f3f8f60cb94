#!/bin/bash
# relay.sh [SECONDS]: passes lines on from long work that several programs do at once. Progress is held back, and the last of it
# is told when nothing else has been said for SECONDS (15; 5 on a terminal). Progress are ninja's lines and those that
# begin with "progress: NAME: "; a NAME with nothing behind it is done.
set -uo pipefail
interval=${1:-}
if [ -z "$interval" ]; then
    interval=15
    if [ -t 1 ]; then interval=5; fi
fi
declare -A now=()
last=$SECONDS
line=''

tell() {
    local name text=''
    for name in "${!now[@]}"; do text+="${text:+; }$name: ${now[$name]}"; done
    printf '    %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "${text:-still at it}"
}

hear() { # line
    case $1 in
        '['[0-9]*/[0-9]*'] '*)
            local count=${1%%]*}
            count=${count#[}
            now[programs]="${count%/*} of ${count#*/} steps"
            if [ "${count%/*}" = "${count#*/}" ]; then unset 'now[programs]'; fi ;;
        'progress: '*)
            local name=${1#progress: }
            local what=${name#*: }
            name=${name%%: *}
            if [ -n "$what" ]; then now[$name]=$what; else unset "now[$name]"; fi ;;
        'ninja: Entering directory'* | 'ninja: no work to do.') ;;
        *) printf '%s\n' "$1"; last=$SECONDS ;;
    esac
}

while :; do
    left=$((last + interval - SECONDS))
    if [ $left -le 0 ]; then
        tell
        last=$SECONDS left=$interval
    fi
    IFS= read -r -t $left rest
    status=$?
    line+=$rest
    if [ $status -gt 128 ]; then continue; fi # the time is up
    if [ $status -ne 0 ]; then break; fi
    hear "$line"
    line=''
done
[ -z "$line" ] || hear "$line"
