# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source this
# Bare Debian roots and copies of the source for them. To be sourced after lib.sh, from the root of
# the checkout.

# Where roots are kept; delete one to get it anew.
readonly roots=${RANDFLAKE_ROOTS:-/var/cache/randflake-roots}

# The suite of each major. A source package and a second suite may follow, from which that source's
# packages are taken.
declare -rA suites=(
    [15]='bookworm'
    [17]='trixie'
    [18]='sid'
    [19]='sid+experimental:postgresql-19'
)

# bootstrap SUITE DIRECTORY [PACKAGES], which are separated by commas: makes a bare root from the
# mirror, and through the proxy, that this machine's apt is set up for.
bootstrap() {
    local suite other source mirror proxy options lines
    IFS=+: read -r suite other source <<<"$1"
    mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/[^']*/InRelease'.*|\1|p" | sed -n 1p)
    [ -n "$mirror" ] || die "apt's configuration names no mirror"
    # Release files of snapshots and of mirrors left behind may have expired.
    options=(--variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io)
    proxy=$(apt-config dump Acquire::http::Proxy)
    [ -z "$proxy" ] || options+=(--aptopt="$proxy")
    # Installing a server must not set up a cluster.
    [ -z "${3-}" ] || options+=(--include="$3"
        --setup-hook='mkdir -p "$1/etc/postgresql-common"'
        --setup-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"')
    lines=("deb $mirror $suite main")
    if [ -n "$other" ]; then
        lines+=("deb $mirror $other main")
        options+=(--setup-hook="printf 'Package: src:$source\nPin: release a=$other\nPin-Priority: 500\n' \
            >\"\$1/etc/apt/preferences.d/other\"")
    fi
    mmdebstrap "${options[@]}" "$suite" "$2" "${lines[@]}"
}

# make_root NAME SUITE PACKAGE...: sets `root` to the directory of the root of that name, made when
# it is missing or was made from something else.
make_root() {
    local recipe=${*:2} suite=$2
    root=$roots/$1
    shift 2
    mkdir -p "$roots"
    exec 9>"$root.lock"
    flock 9
    if [ "$(cat "$root/.recipe" 2>/dev/null)" = "$recipe" ]; then
        return
    fi
    install_packages mmdebstrap iproute2
    rm -rf --one-file-system "$root"
    (IFS=,; bootstrap "$suite" "$root" "$*") || die "could not make a root of $suite"
    echo "$recipe" >"$root/.recipe"
    exec 9>&-
}

# The root for building and testing with a major.
make_matrix_root() {
    make_root "$1" "${suites[$1]}" "postgresql-$1" "postgresql-server-dev-$1" \
        clang g++ make libgtest-dev nlohmann-json3-dev libipc-run-perl procps
}

# The root for building the Debian package of a major.
make_package_root() {
    make_root "package-$1" "${suites[$1]}" "postgresql-$1" "postgresql-server-dev-$1" \
        postgresql-server-dev-all build-essential debhelper fakeroot lintian
}

# copy_source DIRECTORY: the checkout as it is, without what is built.
copy_source() {
    mkdir -p "$1"
    tar -c --exclude=./.git --exclude=./build --exclude=./quickstart --exclude=node_modules \
        --exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' --exclude='*.gcno' . |
        tar -x -C "$1"
}
