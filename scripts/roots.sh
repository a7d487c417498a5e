# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source this
# Bare Debian roots, and commands inside them. To be sourced after lib.sh, from the root of the
# checkout. Works inside a root, too.

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"

# Where roots are kept; delete one to get it anew.
readonly roots=${RANDFLAKE_ROOTS:-/var/cache/randflake-roots}

# The suites of each major, separated by +. After a colon stands the only source package that a suite
# is used for.
declare -rA suites_of=(
    [15]='bookworm'
    [17]='trixie'
    [18]='sid'
    [19]='sid+experimental:postgresql-19'
)
majors=$(printf '%s\n' "${!suites_of[@]}" | sort -n)
oldest=${majors%%$'\n'*}

# bootstrap SUITES DIRECTORY [PACKAGES], which are separated by commas: makes a bare root from the
# mirror, and through the proxy, that this machine's apt is set up for.
bootstrap() {
    local suite parts source mirror proxy options lines=()
    install_packages mmdebstrap iproute2
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
    IFS=+ read -r -a parts <<<"$1"
    for suite in "${parts[@]}"; do
        lines+=("deb $mirror ${suite%:*} main")
        source=${suite#"${suite%:*}"}
        [ -z "$source" ] ||
            options+=(--setup-hook="printf 'Package: src$source\nPin: release a=${suite%:*}\nPin-Priority: 500\n' \
                >\"\$1/etc/apt/preferences.d/other\"")
    done
    mmdebstrap "${options[@]}" "${parts[0]}" "$2" "${lines[@]}"
}

# make_root NAME SUITES PACKAGE...: sets `root` to the directory of the root of that name, made when
# it is missing or was made from something else.
make_root() {
    local recipe=${*:2} suites=$2
    root=$roots/$1
    shift 2
    mkdir -p "$roots"
    exec 9>"$root.lock"
    flock 9
    if [ "$(cat "$root/.recipe" 2>/dev/null)" != "$recipe" ]; then
        rm -rf --one-file-system "$root"
        (IFS=,; bootstrap "$suites" "$root" "$*") || die "could not make a root of $suites"
        echo "$recipe" >"$root/.recipe"
    fi
    exec 9>&-
}

# in_root EXCHANGE ROOT COMMAND...: runs a command inside a root, with mounts, processes and IPC of its
# own. What it mounts or leaves running is removed when it ends.
#
# Unless EXCHANGE is empty, the command finds this directory as /mnt, whatever the permissions above
# it. What it writes elsewhere is thrown away, and it has no network but a loopback of its own, so that
# servers of two roots never meet.
in_root() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --mount --pid --ipc ${1:+--net} --fork --kill-child bash -euc '
        exchange=$1 root=$2
        shift 2
        if [ -n "$exchange" ]; then
            mount -t tmpfs tmpfs "$root/mnt"
            mkdir "$root/mnt/upper" "$root/mnt/work"
            mount -t overlay overlay "$root" -o \
                "lowerdir=$root,upperdir=$root/mnt/upper,workdir=$root/mnt/work"
            mount --bind "$exchange" "$root/mnt"
            ip link set lo up
        else
            # unshare, inside, wants / to be a mount.
            mount --bind "$root" "$root"
        fi
        mount -t proc proc "$root/proc"
        mount --bind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/tmp"
        unset TMPDIR PG_CONFIG
        exec chroot "$root" "$@"' in_root "$@"
}
