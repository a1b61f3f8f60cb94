#!/bin/bash
# To be sourced: a folder of its own, and orrery-step in it that serves gdb. It ends with the script.
folder=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || :; rm -rf "$folder"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$folder"/*.out >&2
    exit 1
}
serve() { # ORRERY-STEP ARGUMENT...: gives $port
    : > "$folder/step.out"
    "$@" --gdb 0 > "$folder/step.out" 2>&1 &
    server=$!
    until port=$(sed -n 's/^waiting for gdb on port \([0-9]*\).*/\1/p' "$folder/step.out") && [ -n "$port" ]; do
        kill -0 "$server" 2>/dev/null || fail "orrery-step ended"
        sleep 0.05
    done
}
end() {
    wait "$server" || fail "orrery-step ended with status $?"
    server=''
}
