# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source this
# Bare Debian roots and copies of the source for them. To be sourced after lib.sh, from the root of
# the checkout.

# Where roots are kept; delete one to get it anew.
readonly roots=${RANDFLAKE_ROOTS:-/var/cache/randflake-roots}

# The suites that may have a major, best first; scripts/bare_root.sh explains the notation.
declare -rA suites=(
    [15]='bookworm'
    [17]='trixie'
    [18]='forky sid'
    [19]='sid+experimental:postgresql-19'
)

# find_root NAME SUITES PACKAGE... prints the directory of the root of that name, made when needed
# from the first of the suites that has the packages.
find_root() {
    local name=$1 candidates=$2 suite directory
    shift 2
    for suite in $candidates; do
        directory=$roots/$name-${suite%%[+:]*}
        if scripts/bare_root.sh "$directory" "$suite" "$@" >&2; then
            echo "$directory"
            return
        fi
    done
    return 1
}

# The root for the matrix of a major: for building, and for the tests.
find_matrix_root() {
    find_root "$1" "${suites[$1]}" "postgresql-$1" "postgresql-server-dev-$1" \
        clang g++ make libgtest-dev nlohmann-json3-dev libipc-run-perl procps
}

# The root for building the Debian package of a major.
find_package_root() {
    find_root "package-$1" "${suites[$1]}" "postgresql-$1" "postgresql-server-dev-$1" \
        postgresql-server-dev-all build-essential debhelper lintian
}

# Prints the name of a tree of the last commit plus uncommitted changes of files under version
# control.
current_tree() {
    local tree
    tree=$(git -c user.name=randflake -c user.email=randflake stash create)
    git rev-parse "${tree:-HEAD}"
}

# export_tree TREE DIRECTORY
export_tree() {
    mkdir -p "$2"
    git archive "$1" | tar -x -C "$2"
}
