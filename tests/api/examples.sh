#!/bin/bash
# SPDX-License-Identifier: MIT
# examples.sh - the programs of tests/examples, which people copy: each compiles without
# a warning with what a stranger has, and does what its head says, on SQLite.
. "$(dirname "$0")/lib/api.sh"

if ! has_driver sqlite || [ ! -x "$build/bin/dblock" ]; then
    echo 'SKIP: the examples need the SQLite driver, and the command to make the tables'
    exit 77
fi
dblock=$build/bin/dblock

is_idle()
{
    "$dblock" list --json -d "$1" > "$folder/list" && ! grep -q '"owner"' "$folder/list"
}

# fails_aloud PROGRAM URL: of a file that has other tables
fails_aloud()
{
    : > "${2#sqlite:}"
    ! "$@" > "$folder/said" 2>&1 && grep -q 'no such table' "$folder/said"
}

for source in tests/examples/*.c; do
    name=$(basename "$source" .c)
    check "$name: compiles" compile "$folder/$name" "$source"
    check "$name: compiles as newer C with clang, if that is here" \
        "$(command -v clang || echo "$cc")" -std=gnu17 -Wall -Wextra -Wpedantic -Werror -Iinclude \
        -fsyntax-only "$source"
    [ -x "$folder/$name" ] || continue
    url=sqlite:$folder/$name.db
    check "$name: its tables" "$dblock" init -q -d "$url"
    words=("$url")
    # acquire takes a name too
    [ "$name" != acquire ] || words+=(example)
    check "$name: runs" "$folder/$name" "${words[@]}"
    # not at once: what was taken for a minimum time is kept so long
    check "$name: leaves no lock behind" until_true is_idle "$url"
    check "$name: runs again" "$folder/$name" "${words[@]}"
    # these make the tables themselves, or need none
    case $name in acquire | fenced | joined) continue ;; esac
    check "$name: fails where the tables are missing" fails_aloud "$folder/$name" \
        "sqlite:$folder/$name-bare.db"
done
finish
