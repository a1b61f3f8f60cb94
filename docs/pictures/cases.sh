#!/bin/bash
# cases.sh FOLDER: makes the pictures of docs/profiling-cases.md of the pages that tests/vm/prof/worked.sh has left in FOLDER.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$(realpath -- "$1")
picture() { # CASE HEIGHT
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="1100,$2" --virtual-time-budget=3000 \
        --screenshot="$here/case-$1.png" "file://$folder/$1.html"
}
picture host 420
picture memory 420
picture rank 900
