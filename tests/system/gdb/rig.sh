#!/bin/bash
# To be sourced: a folder of its own, and a rig in it that serves gdb and is told things through descriptor 3. Both end
# with the script.
folder=$(mktemp -d)
rig_pid='' gdb_pid=''
trap '[ -z "$gdb_pid" ] || kill -KILL "$gdb_pid" 2>/dev/null || :; [ -z "$rig_pid" ] || kill -KILL "$rig_pid" 2>/dev/null || :
      rm -rf "$folder"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$folder"/*.out >&2
    exit 1
}
start_rig() { # RIG ARGUMENT...: gives $port
    mkfifo "$folder/in"
    "$@" < "$folder/in" > "$folder/rig.out" 2>&1 &
    rig_pid=$!
    exec 3> "$folder/in"
    until port=$(sed -n 's/^port //p' "$folder/rig.out") && [ -n "$port" ]; do
        kill -0 "$rig_pid" 2>/dev/null || fail "the rig ended"
        sleep 0.05
    done
}
