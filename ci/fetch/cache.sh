# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# cache.sh - where software lies that is not a package of this machine's: in a
# folder of the machine's own as root, else of yours. Read by sh and bash.

# fetched NAME: its folder, if it is here
fetched()
{
    for fetched_below in /var/cache/dblock "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/dblock"; do
        [ ! -e "$fetched_below/$1/complete" ] || {
            echo "$fetched_below/$1"
            return 0
        }
    done
    return 1
}

# Where to put it
fetch_folder()
{
    if [ "$(id -u)" = 0 ]; then
        echo "/var/cache/dblock/$1"
    else
        echo "${XDG_CACHE_HOME:-$HOME/.cache}/dblock/$1"
    fi
}

# fetch_into NAME FUNCTION: calls FUNCTION with a new folder, which takes the place of
# NAME once that has succeeded: a killed fetch leaves nothing that looks whole, and of
# two at once the second finds it done.
fetch_into()
{
    fetch_to=$(fetch_folder "$1")
    mkdir -p "${fetch_to%/*}"
    exec 8> "$fetch_to.lock"
    if command -v flock > /dev/null; then
        flock 8
    fi
    [ ! -e "$fetch_to/complete" ] || return 0
    rm -rf "$fetch_to" "$fetch_to.new"
    mkdir "$fetch_to.new"
    chmod 755 "${fetch_to%/*}" "$fetch_to.new"
    if "$2" "$fetch_to.new"; then
        : > "$fetch_to.new/complete"
        mv "$fetch_to.new" "$fetch_to"
    else
        rm -rf "$fetch_to.new"
        return 1
    fi
}
