# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # variables are for the scripts that read this
# api.sh - what the tests of the interface share: checks that print TAP, a folder of
# their own, the installed tree and the way to compile against it. Read with `.`.
#
# The build is $DBLOCK_BUILD, or the release one. Exit status of a script: 0 passed, 77
# skipped, else failed.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd) || exit 71
cd "$here" || exit 71
build=${DBLOCK_BUILD:-$here/build/release}
make=${MAKE:-make}
cc=${CC:-cc}
export LC_ALL=C.UTF-8
n_checks=0
n_failed=0

if [ ! -e "$build/lib/libdblock.so" ]; then
    echo "SKIP: there is no $build/lib/libdblock.so; make builds it"
    exit 77
fi
if nm -D "$build/lib/libdblock.so" | grep -qE ' U __(asan|tsan)_'; then
    echo "SKIP: a stranger's program cannot be linked with a build for a sanitizer"
    exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/dblock-api.XXXXXX") || exit 71
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT HUP

pass()
{
    n_checks=$((n_checks + 1))
    echo "ok $n_checks - $*"
}

fail()
{
    n_checks=$((n_checks + 1))
    n_failed=$((n_failed + 1))
    echo "not ok $n_checks - $*"
}

skip()
{
    n_checks=$((n_checks + 1))
    echo "ok $n_checks # SKIP $*"
}

# check NAME COMMAND...: passes if COMMAND does; says what it said if not
check()
{
    local name=$1
    shift
    if "$@" > "$folder/said" 2>&1; then
        pass "$name"
    else
        fail "$name"
        sed 's/^/  /' "$folder/said"
    fi
}

# until_true COMMAND...: waits until COMMAND succeeds, ten seconds at most
until_true()
{
    local deadline=$((SECONDS + 10))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

# same FILE EXPECTED NAME
same()
{
    check "$3" diff -u "$2" "$1"
}

finish()
{
    echo "1..$n_checks"
    [ "$n_failed" = 0 ] || exit 1
    exit 0
}

# The drivers that this build has.
drivers=()
for driver in sqlite pgsql mysql; do
    [ ! -e "$build/lib/libdblock-$driver.so" ] || drivers+=("$driver")
done

has_driver()
{
    [ -e "$build/lib/libdblock-$1.so" ]
}

# Against the tree that was not installed: compile OUTPUT SOURCE [FLAG]...
# What the program uses by itself.
own_libraries()
{
    grep -q '^#include <sqlite3.h>' "$1" && echo -lsqlite3
}

# shellcheck disable=SC2046 # nothing or one word
compile()
{
    local output=$1 source=$2
    shift 2
    "$cc" -std=gnu11 -Wall -Wextra -Werror "$@" -I"$here/include" -o "$output" "$source" \
        -L"$build/lib" -Wl,-rpath,"$build/lib" -Wl,--disable-new-dtags \
        "${drivers[@]/#/-ldblock-}" -ldblock -lpthread $(own_libraries "$source")
}
