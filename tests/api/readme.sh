#!/bin/bash
# SPDX-License-Identifier: MIT
# readme.sh - what README.md shows works as it stands there: every block of C is compiled
# and, if it has a main, run; every block of shell is run, all in one shell, in their
# order; the lines of a crontab are run as cron does it. Files in /tmp become files of
# this test's folder, and the databases of the crontab the ones that are there.
# Time limit: 300 s
. "$(dirname "$0")/lib/api.sh"

readme=$here/README.md
if [ ! -e "$readme" ] || [ "${#drivers[@]}" = 0 ] || [ ! -x "$build/bin/dblock" ]; then
    echo 'SKIP: needs README.md, a driver and the command'
    exit 77
fi
cd "$folder" || exit 71
export HOME=$folder PATH=$build/bin:$PATH
unset DBLOCK_URL

# Blocks as files NUMBER.KIND, and the line on which each begins.
awk -v folder="$folder" '
    /^```/ && file != "" { close(file); file = ""; next }
    /^```[a-z]/ {
        kind = substr($0, 4)
        sub(/[^a-z].*/, "", kind)
        file = sprintf("%s/%04d.%s", folder, FNR, kind)
        printf "" > file
        next
    }
    file != "" { print > file }' "$readme"
sed -i "s|/tmp/|$folder/|g" "$folder"/[0-9]*.*

# ------------------------------------------------------------------------------- C

# Which variable a program needs, beside a file.
needs()
{
    case $(cat "$1") in
    *DBLOCK_TEST_PGSQL*) echo DBLOCK_TEST_PGSQL ;;
    *DBLOCK_TEST_MYSQL*) echo DBLOCK_TEST_MYSQL ;;
    *dblock_pgsql_driver* | *dblock_mysql_driver*) echo another ;;
    esac
}

# lacks FILE: the driver whose header it wants is not built
lacks()
{
    local driver
    for driver in sqlite pgsql mysql; do
        if grep -q "dblock/$driver.h\|dblock_${driver}_driver" "$1" && ! has_driver $driver; then
            return 0
        fi
    done
    return 1
}

# A piece that is no whole file: what it uses without declaring is there.
wrap()
{
    cat << 'EOT'
#include <dblock/dblock.h>
#include <dblock/load.h>
#include <dblock/mysql.h>
#include <dblock/pgsql.h>
#include <dblock/sqlite.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int piece(dblock_client *client, dblock_lock *lock, struct dblock_options options,
    struct dblock_error error, const char *name, dblock_status status);
int piece(dblock_client *client, dblock_lock *lock, struct dblock_options options,
    struct dblock_error error, const char *name, dblock_status status)
{
EOT
    cat "$1"
    printf '    (void)client, (void)lock, (void)options, (void)error, (void)name, (void)status;\n'
    printf '    return 0;\n}\n'
}

for source in "$folder"/[0-9]*.c; do
    [ -e "$source" ] || continue
    line=$(basename "$source" .c)
    what="C of line $((10#$line))"
    if lacks "$source"; then
        skip "$what: its driver is not built"
        continue
    fi
    if grep -q '\<main(' "$source"; then
        check "$what: compiles" compile "$folder/$line" "$source"
        variable=$(needs "$source")
        if [ "$variable" = another ] || { [ -n "$variable" ] && [ -z "${!variable:-}" ]; }; then
            skip "$what: not run, as $variable is not set"
        else
            check "$what: runs" timeout 60 "$folder/$line"
        fi
    elif grep -q '^#include' "$source"; then
        check "$what: compiles" "$cc" -std=c11 -Wall -I"$here/include" -fsyntax-only "$source"
    else
        wrap "$source" > "$folder/piece.c"
        check "$what: compiles" \
            "$cc" -std=c11 -Wall -I"$here/include" -fsyntax-only "$folder/piece.c"
    fi
done

# --------------------------------------------------------------------------- shell

# Blocks of whole commands; and of a session, where "$ " comes before what is typed. Each
# block ends in its folder; what is no dblock (make, cc, apt) is another test's matter.
{
    printf 'set -e\n'
    for block in "$folder"/[0-9]*.sh "$folder"/[0-9]*.console; do
        [ -e "$block" ] || continue
        printf 'echo "# line %s" >&2\n' "$(basename "${block%.*}")"
        case $block in
        *.console) sed -n 's/^\$ \(dblock .*\|export .*\)/\1/p' "$block" ;;
        *) cat "$block" ;;
        esac
    done
} > "$folder/all.sh"
if grep -q dblock "$folder/all.sh"; then
    check 'the shell blocks run, in their order' timeout 120 sh "$folder/all.sh"
fi

# ------------------------------------------------------------------------- crontab

# What cron gives to a shell, with URL as the database.
run_crontab()
{
    local url=$1 file=$2 line command
    while IFS= read -r line; do
        case $line in
        '' | '#'*) continue ;;
        [A-Z]*=*) continue ;; # the URL, which is another here
        esac
        # five fields of time, or a word like @daily
        command=$(sed 's/^@[a-z]*[[:space:]]*//; t
            s/^\([^[:space:]]*[[:space:]]*\)\{5\}//' <<< "$line")
        # the program is an example, and so is how long the name is kept
        command=$(sed 's|/usr/local/bin/[^ ]*|true|; s/--at-least [0-9a-z]*/--at-least 1/' \
            <<< "$command")
        echo "$command"
        (cd / && env -i HOME="$HOME" PATH="$PATH" SHELL=/bin/sh DBLOCK_URL="$url" \
            sh -c "$command") < /dev/null || return
    done < "$file"
}

for block in "$folder"/[0-9]*.crontab; do
    [ -e "$block" ] || continue
    what="crontab of line $((10#$(basename "$block" .crontab)))"
    for url in "sqlite:$folder/cron.db" "${DBLOCK_TEST_PGSQL:-}" "${DBLOCK_TEST_MYSQL:-}"; do
        [ -n "$url" ] || continue
        check "$what: tables in ${url%%:*}" dblock init -q -d "$url"
        check "$what: runs on ${url%%:*}" run_crontab "$url" "$block"
    done
done
cd "$here" || exit 71
finish
