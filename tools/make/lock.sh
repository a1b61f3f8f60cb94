# shellcheck shell=bash
# Sourced. hold FILE WHAT: what follows in this program is done by one at a time; says so if it has to wait.
# The programs that it starts hold FILE too, so what one leaves behind is not disturbed either.
hold() {
    mkdir -p -- "$(dirname -- "$1")"
    exec {held}>> "$1"
    if ! flock --nonblock "$held"; then
        echo "==> another run $2; waiting for that" >&2
        flock "$held"
    fi
}
