#!/bin/bash
# Checks that each file of src has a head comment and a place in the map of docs/architecture.md.
# The map lists the directories from the lowest up. No file may include a header from a higher one.

set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
awk '
    FILENAME == "docs/architecture.md" {
        if (match($0, /^\| `(core|pg)\/[a-z]+` \|/)) {
            level[$2] = ++rooms
            row[$2] = $0
        }
        next
    }
    FNR == 1 {
        split(FILENAME, path, /[\/.]/)
        room = "`" path[2] "/" path[3] "`"
        if (!index(row[room], "`" path[4] "`"))
            complain(FILENAME ": docs/architecture.md does not name it in the row of " room)
        if (!/^\/\/ /)
            complain(FILENAME ": no head that says what it is for")
    }
    /^#include "(core|pg)\// {
        split($2, path, /["\/]/)
        other = "`" path[2] "/" path[3] "`"
        if (!(other in level) || level[other] > level[room])
            complain(FILENAME ":" FNR ": " room " includes " other ", which is not below it in docs/architecture.md")
    }
    function complain(text) { print text > "/dev/stderr"; wrong = 1 }
    END { exit wrong || !rooms }
' docs/architecture.md src/*/*/*.{cpp,h}
