# Joins the parts of an SQL file: awk [-v schema=NAME] -f scripts/join_sql.awk PART... >FILE
# The Makefile lists the files that are made in this way. A name after `schema` replaces
# @extschema@. All other text stays as it is, except for what these lines write in full:
#
#   --@ for NAME...: VALUE...; VALUE...      writes the lines up to `--@ end` once for each list of
#   --@ end                                  values, with the values instead of @NAME@. Lines that
#                                            begin with `--@ and` continue the lists
#   --@ define BLOCK                         keeps the lines up to `--@ end`
#   --@ use BLOCK [NAME=VALUE]...            writes the lines of a block, indented as this line is
#
# A value is one word. Blocks may contain these lines. An unknown line or name is an error.

function fail(text) {
    print "join_sql.awk: " text >"/dev/stderr"
    exit failed = 1
}

# Replaces each `from` in a text.
function replace(text, from, to,    at, done) {
    while (at = index(text, from)) {
        done = done substr(text, 1, at - 1) to
        text = substr(text, at + length(from))
    }
    return done text
}

function indented(text, by,    lines, n, i, done) {
    n = split(text, lines, "\n")
    for (i = 1; i < n; i++)
        done = done (lines[i] == "" ? "" : by) lines[i] "\n"
    return done
}

# Replaces @NAME@ by its value in `body`, for each name of a list.
function set(names, values,    i, n, v, count) {
    n = split(names, name_, " ")
    count = split(values, v, " ")
    if (n != count)
        fail("not " n " values: " values)
    for (i = 1; i <= n; i++)
        body = replace(body, "@" name_[i] "@", v[i])
}

function expand(text,    lines, n, i, j, depth, word, words, block, list, lists, at, heading) {
    n = split(text, lines, "\n")
    for (i = 1; i < n; i++) {
        if (lines[i] !~ /^ *--@/) {
            if (schema != "")
                lines[i] = replace(lines[i], "@extschema@", schema)
            if (match(replace(lines[i], "@extschema@", ""), /@[a-z0-9_]+@/))
                fail("a name without a value: " lines[i])
            print lines[i]
            continue
        }
        words = split(lines[i], word, " ")
        if (word[2] == "use") {
            if (!(word[3] in blocks))
                fail("no block " word[3])
            body = blocks[word[3]]
            for (j = 4; j <= words; j++)
                set(substr(word[j], 1, (at = index(word[j], "=")) - 1), substr(word[j], at + 1))
            match(lines[i], /^ */)
            expand(indented(body, substr(lines[i], 1, RLENGTH)))
            continue
        }
        if (word[2] != "for" && word[2] != "define")
            fail("unknown: " lines[i])
        heading = lines[i]
        while (sub(/^ *--@ and /, "", lines[i + 1]))
            heading = heading " " lines[++i]
        block = ""
        depth = 1
        for (j = i + 1; j < n; j++) {
            if (lines[j] ~ /^ *--@ (for|define) /)
                depth++
            else if (lines[j] ~ /^ *--@ end$/ && --depth == 0)
                break
            block = block lines[j] "\n"
        }
        if (depth)
            fail("no end of: " lines[i])
        if (word[2] == "define")
            blocks[word[3]] = block
        else {
            at = index(heading, ":")
            words = substr(heading, 1, at - 1)
            sub(/^ *--@ for /, "", words)
            lists = split(substr(heading, at + 1), list, ";")
            for (at = 1; at <= lists; at++) {
                body = block
                set(words, list[at])
                expand(body)
            }
        }
        i = j
    }
}

FNR == 1 && NR > 1 { all = all "\n" }
{ all = all $0 "\n" }
END {
    expand(all)
    exit failed
}
