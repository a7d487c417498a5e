#!/bin/bash
# Files of src have a head, and no include points up: docs/design.md lists the rooms from the ground up.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
awk '
    FILENAME == "docs/design.md" {
        if (match($0, /^\| `(core|pg)\/[a-z]+` \|/))
            level[substr($0, 4, RLENGTH - 6)] = ++rooms
        next
    }
    FNR == 1 {
        split(FILENAME, path, "/")
        room = path[2] "/" path[3]
        if (!(room in level))
            complain(FILENAME ": docs/design.md has no room " room)
        if (!/^\/\/ /)
            complain(FILENAME ": no head that says what it is for")
    }
    /^#include "(core|pg)\// {
        split($2, path, "[\"/]")
        other = path[2] "/" path[3]
        if (!(other in level) || level[other] > level[room])
            complain(FILENAME ":" FNR ": " room " includes " other ", which is not below it in docs/design.md")
    }
    function complain(text) { print text > "/dev/stderr"; wrong = 1 }
    END { exit wrong || !rooms }
' docs/design.md src/*/*/*.{cpp,h}
