# shellcheck shell=bash disable=SC2034 # callers use the colours
# Defines functions for the other scripts. Source this file in bash, at the root of the checkout.

umask 022 # the server's user must be able to read installed files
export LC_ALL=C.UTF-8
PATH=$PATH:/usr/sbin:/sbin
exec </dev/null # children must not read the caller's input

bold='' green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi

headline() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }

die() {
    printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
    exit 1
}

# none_such KIND NAME CANDIDATE...: dies, and names candidates that share the beginning of a word,
# or all candidates.
none_such() {
    local all similar beginnings
    all=$(printf '%s\n' "${@:3}" | sort -u)
    beginnings=$(grep -oE '[A-Za-z0-9]+' <<<"$2" | cut -c -3 | paste -sd '|')
    similar=$(grep -iE "${beginnings:-.}" <<<"$all" | head -n 5)
    die "there is no $1 named \"$2\"; there are: $(paste -sd ';' <<<"${similar:-$all}" | sed 's/;/; /g')"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root, and there is no sudo: $*"
    fi
}

# as_user NAME COMMAND...: runs the command with / as the working directory. Use absolute paths.
as_user() (
    user=$1
    shift
    cd /
    if [ "$(id -un)" = "$user" ]; then
        "$@"
    elif [ "$(id -u)" -eq 0 ]; then
        runuser -u "$user" -- "$@"
    else
        as_root -u "$user" -- "$@"
    fi
)

# Prints the user that runs servers. A server refuses to run as root.
server_user() {
    if [ "$(id -u)" -ne 0 ]; then
        id -un
    elif [ "${SUDO_USER:-root}" != root ]; then
        echo "$SUDO_USER"
    else
        echo postgres
    fi
}

# Installs missing Debian packages. If none is missing, prints nothing and needs no network.
install_packages() {
    local package missing=()
    for package; do
        [[ $(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>&1) =~ ^installed ]] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null || die "apt-get not found; please install: ${missing[*]}"

    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    local log=build/packages.log
    echo "installing packages: ${missing[*]}"
    mkdir -p build
    if ! { as_root "${apt[@]}" update &&
        as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "could not install packages: ${missing[*]}"
    fi
}

newest_major() {
    printf '%s\n' /usr/lib/postgresql/*/bin/postgres | cut -d/ -f5 | sed -n '/^[0-9]/p' | sort -n | tail -n 1
}

# If PG_CONFIG is unset, sets it to the newest PostgreSQL's pg_config. Installs missing packages.
find_postgresql() {
    if [ -z "${PG_CONFIG:-}" ]; then
        local major
        [ -n "$(newest_major)" ] || install_packages postgresql
        major=$(newest_major)
        install_packages "postgresql-server-dev-$major"
        PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
    fi
    export PG_CONFIG
    "$PG_CONFIG" --version >/dev/null || die "PG_CONFIG=$PG_CONFIG does not work"
}

build() { make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" "$@"; }

# Builds as the caller. Installs as root if the caller may not write to the server's directories.
build_and_install() {
    build all "$@" &&
        if [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then
            build install "$@"
        else
            as_root make -s PG_CONFIG="$PG_CONFIG" install "$@"
        fi
}

# copy_source DIRECTORY: copies the checkout without build products and history.
copy_source() {
    mkdir -p "$1"
    tar -c --exclude=./.git --exclude=./build --exclude=./quickstart --exclude=node_modules \
        --exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' --exclude='*.gcno' . |
        tar -x -C "$1"
}

# links_lead_somewhere DIRECTORY: checks that the links between the pages in DIRECTORY have targets.
links_lead_somewhere() (
    cd "$1"
    [ -e docs/monitoring.md ] && [ -e docs/monitoring/alerts.yml ]
    dangling=$(find . -name '*.md' | while read -r document; do
        grep -o '](\([^)# ]*\)' "$document" | sed 's/^](//' | sort -u | while read -r link; do
            [[ $link =~ ^(https?:.*)?$ ]] || [ -e "${document%/*}/$link" ] || echo "$document: $link"
        done
    done)
    [ -z "$dangling" ] || { echo "links to nothing: $dangling"; false; }
)

# fill_table PAGE NAME: replaces the lines from "<!-- NAME -->" to the next empty line by the input.
# Rows that differ only in the first cell become one row.
fill_table() {
    local page
    page=$(lines=$(awk '
        { cell = NR == 2 ? 1 : index($0, " |"); rest = substr($0, cell) }
        rest in names { names[rest] = names[rest] "; " substr($0, 3, cell - 3); next }
        { rows[++n] = rest; names[rest] = substr($0, 1, cell - 1) }
        END { for (i = 1; i <= n; i++) print names[rows[i]] rows[i] }') awk -v name="<!-- $2 -->" '
        /^$/ { inside = 0 }
        !inside
        $0 == name { print ENVIRON["lines"]; inside = 1 }' "$1")
    echo "$page" >"$1"
}

# --- stages: writes logs to `logs`, runs only stages whose name contains `only` -------------------

logs=build/test only='' passed=0 failed=0

# stage NAME COMMAND...: writes the command's output to a log, and shows the log's end on failure.
stage() {
    [[ $1 = *"$only"* ]] || return 0
    printf '%s%-36s%s' "$bold" "$1" "$plain"
    run_stage "$@"
    report_stage "$1"
}

log_of() { echo "$logs/${1//[^A-Za-z0-9+]/-}.log"; }

run_stage() {
    local log began=$SECONDS
    log=$(log_of "$1")
    mkdir -p "$logs" # a stage may have removed it
    (
        set -e
        [ -z "${beside_pid-}" ] || renice -n 5 $BASHPID >/dev/null
        "${@:2}"
    ) >"$log" 2>&1
    echo "$? $((SECONDS - began))" >"$log.result"
}

report_stage() {
    local log status seconds
    log=$(log_of "$1")
    read -r status seconds <"$log.result"
    if [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
        printf '%spassed%s %4d s\n' "$green" "$plain" "$seconds"
    else
        failed=$((failed + 1))
        printf '%sFAILED%s %4d s, exit status %d; the end of %s:\n' "$red" "$plain" "$seconds" \
            "$status" "$log"
        tail -n 200 "$log" | sed 's/^/    /'
    fi
}

# beside NAME COMMAND...: starts a stage that runs beside the next stages. `meet` waits for its end.
beside() {
    [[ $1 = *"$only"* ]] || return 0
    set -m # gives the stage a process group of its own, so that an interrupt can end all of it
    run_stage "$@" &
    set +m
    beside_name=$1 beside_pid=$!
    trap 'kill -TERM -- "-$beside_pid"; exit 130' INT TERM
}

meet() {
    [ -n "${beside_pid-}" ] || return 0
    printf '%s%-36s%s' "$bold" "$beside_name" "$plain"
    wait "$beside_pid"
    beside_pid=
    trap - INT TERM
    report_stage "$beside_name"
}

# not_run WHAT REASON: makes `finish` report a test that did not run. Stages may call not_run too.
not_run() { printf 'not run: %s. %s\n' "$@" >>$logs/not_run; }

# Prints which tests did not run, and how many stages passed. Exits with 0 if no stage failed.
finish() {
    echo
    cat $logs/not_run 2>/dev/null
    grep -hs '^stale seed' $logs/*.log
    printf '%s passed, %s failed\n' $passed $failed
    [ $failed -eq 0 ]
    exit
}
