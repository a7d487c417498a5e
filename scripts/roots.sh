# shellcheck shell=bash disable=SC2034 # callers use these variables
# Makes bare root directories of Debian ("roots"), and runs commands in them. Needs lib.sh.

[ "$(id -u)" = 0 ] || die "this needs root, for mounts of its own"

readonly roots=${RANDFLAKE_ROOTS:-/var/cache/randflake-roots}

# Maps each major version to the Debian suites that contain it, joined by "+". For SUITE:PACKAGE,
# apt takes only the packages of the source package PACKAGE from SUITE.
declare -rA suites_of=(
    [15]='bookworm'
    [17]='trixie'
    [18]='sid'
    [19]='sid+experimental:postgresql-19'
)
majors=$(printf '%s\n' "${!suites_of[@]}" | sort -n)
oldest=${majors%%$'\n'*}

# bootstrap SUITES DIRECTORY [PACKAGES]: makes a bare root directory of Debian, in which apt uses
# this machine's mirror and proxy. PACKAGES is a list separated by commas.
bootstrap() {
    local suite parts source mirror proxy options lines=()
    install_packages mmdebstrap iproute2
    mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/[^']*/InRelease'.*|\1|p" | sed -n 1p)
    [ -n "$mirror" ] || die "apt's configuration names no mirror"
    # The release files of snapshots and of abandoned mirrors may have expired.
    options=(--variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io)
    proxy=$(apt-config dump Acquire::http::Proxy)
    [ -z "$proxy" ] || options+=(--aptopt="$proxy")
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

# make_root NAME SUITES PACKAGE...: sets `root` to the directory of the root NAME. Makes the root if
# it is missing or was made from other arguments.
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

# in_root EXCHANGE ROOT COMMAND...: runs a command with ROOT as its root directory, and with its own
# mounts, processes and IPC. The mounts, processes and IPC objects end with the command.
#
# If EXCHANGE is not empty, the command sees this directory as /mnt. Everything that it writes
# elsewhere is discarded, and its network is only a loopback interface. So servers in two roots
# never connect to each other.
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
            # unshare, which runs inside the root, requires that / is a mount point.
            mount --bind "$root" "$root"
        fi
        mount -t proc proc "$root/proc"
        mount --bind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/tmp"
        unset TMPDIR PG_CONFIG
        exec chroot "$root" "$@"' in_root "$@"
}
