# shellcheck shell=bash
# Sourced. to_the_end COMMAND...: COMMAND with its status, and then the rest of stdin. Who unpacks an archive is done at its last
# entry, and mmdebstrap, whose archives have up to 10 KiB of zeros behind it, dies of a pipe that was closed before them.
to_the_end() {
    local status=0
    "$@" || status=$?
    cat > /dev/null
    return $status
}
