#!/bin/bash
# Checks that each file of src has a head comment and a place in the map of docs/architecture.md.
# The map lists the directories from the lowest up. No file may include a header from a higher one,
# or more than nine headers of the project. Then checks that names keep to the meaning that a word
# has there.

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
        included = 0
    }
    /^#include "(core|pg)\// {
        if (++included == 10)
            complain(FILENAME ": includes more than nine of the project\047s headers")
        split($2, path, /["\/]/)
        other = "`" path[2] "/" path[3] "`"
        if (!(other in level) || level[other] > level[room])
            complain(FILENAME ":" FNR ": " room " includes " other ", which is not below it in docs/architecture.md")
    }
    function complain(text) { print text > "/dev/stderr"; wrong = 1 }
    END { exit wrong || !rooms }
' docs/architecture.md src/*/*/*.{cpp,h}

# Only files of these places may have names with the word, which has its one meaning there.
awk '
    BEGIN {
        place["look"] = "^src/(core|pg)/(lease|server)/|/(shared_memory|reserve_errors)[.]"
        place["horizon"] = "^src/(core|pg)/(server|secret|settings|type)/"
        place["announce"] = "^src/pg/(lease|rival|settings)/|coordinator/(20|32|82|92)"
        place["mark"] = "^src/core/lease/|coordinator/"
        place["slot"] = "^src/"
    }
    FNR == 1 { for (word in place) check(tolower(FILENAME), word, "file") }
    {
        line = tolower($0)
        sub(/(\/\/|--).*/, "", line)
        gsub(/"[^"]*"/, "", line)
        for (word in place)
            if (index(line, word))
                while (match(line, /[a-z_][a-z0-9_]*/)) {
                    check(substr(line, RSTART, RLENGTH), word, FILENAME ":" FNR)
                    line = substr(line, RSTART + RLENGTH)
                }
    }
    function check(name, word, where) {
        gsub(/lookup|marker|markguc/, "", name)
        if (index(name, word) && FILENAME !~ place[word]) {
            print where ": \"" name "\": \"" word "\" means something else, see docs/architecture.md" > "/dev/stderr"
            wrong = 1
        }
    }
    END { exit wrong }
' src/*/*/*.{cpp,h} extension/coordinator/*.sql
