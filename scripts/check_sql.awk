# Checks SQL files: LC_ALL=C awk -v exempt="NAME..." -f scripts/check_sql.awk FILE...
# A line has at most 100 columns, a function 80 lines, a statement 40 lines, a list of arguments 8.
# A statement is inside of at most 4 blocks, by its indentation. `exempt` names functions whose
# unrolled rounds may be longer. A function named *_configure may have more arguments. Results (OUT)
# are no arguments.

function complain(text) {
    print FILENAME ":" FNR ": " text
    wrong = 1
}

FNR == 1 { inside = 0; arguments = "" }
{ gsub(/[\200-\277]/, "") } # of the bytes of a character, only the first counts (LC_ALL=C)
length($0) > 100 { complain(length($0) " columns") }

# The list of arguments ends with the first line that has the closing parenthesis.
/^CREATE (OR REPLACE )?FUNCTION / {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ .]/, "", name)
    begun = FNR
    text = ""
    open = 1
}
open {
    text = text $0
    if (/\)/) {
        open = 0
        sub(/^[^(]*\(/, "", text)
        sub(/,? *OUT .*/, "", text)
        if (gsub(/,/, ",", text) > 7 && name !~ /_configure$/)
            complain(name " has over 8 arguments")
    }
}
/ AS \$[a-z]*\$/ || /^AS \$[a-z]*\$/ || /^DO \$[a-z]*\$/ {
    inside = 1
    statement = FNR + 1
    if (/^DO /) { name = "DO"; begun = FNR }
    next
}
/^(END )?\$[a-z]*\$;/ {
    if (FNR - begun + 1 > 80 && index(" " exempt " ", " " name " ") == 0)
        complain(name " has " FNR - begun + 1 " lines")
    if (inside && FNR - statement > 40)
        complain("a statement of " FNR - statement " lines")
    inside = 0
}
inside && /^ *--/ { if (statement == FNR) statement++ }
inside && !/^ *--/ {
    if (statement == FNR && match($0, /^ */) && RLENGTH >= 24)
        complain("inside of over 4 blocks")
    if (/(;|THEN|LOOP|BEGIN|ELSE|DECLARE)( *--.*)?$/ || /^$/) {
        if (FNR - statement + 1 > 40)
            complain("a statement of " FNR - statement + 1 " lines")
        statement = FNR + 1
    }
}
END { exit wrong }
