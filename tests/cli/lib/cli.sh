# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # variables are for the scripts that read this
# cli.sh - what the tests of the command share: a folder and a database of their
# own, checks that print TAP, waits with a deadline. Read with `.` by each script.
#
# The command is $DBLOCK, or $DBLOCK_COMMAND, or the release build's. Exit status
# of a script: 0 passed, 77 skipped, else failed.
set -u
# In a group of its own each background process is as a shell's user would have it:
# with INT and QUIT not ignored.
set -m

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd) || exit 71
DBLOCK=${DBLOCK:-${DBLOCK_COMMAND:-$here/build/release/bin/dblock}}
case $DBLOCK in /*) ;; *) DBLOCK=$PWD/$DBLOCK ;; esac
if [ ! -x "$DBLOCK" ]; then
    echo "SKIP: there is no $DBLOCK"
    exit 77
fi
export DBLOCK

folder=$(mktemp -d "${TMPDIR:-/tmp}/dblock-cli.XXXXXX") || exit 71
folder=$(cd "$folder" && pwd -P)
unset DBLOCK_URL DBLOCK_NAME DBLOCK_OWNER DBLOCK_TOKEN DBLOCK_GRANT XDG_CONFIG_HOME XDG_STATE_HOME
export HOME=$folder
export LC_ALL=C.UTF-8 TZ=UTC
n_checks=0
n_failed=0
started=()

clean_up()
{
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2> /dev/null
    done
    wait 2> /dev/null
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

# ------------------------------------------------------------------------ checks

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

# check NAME COMMAND...: passes if COMMAND does
check()
{
    local name=$1
    shift
    if "$@"; then
        pass "$name"
    else
        fail "$name"
    fi
}

# is ACTUAL EXPECTED NAME
is()
{
    if [ "$1" = "$2" ]; then
        pass "$3"
    else
        fail "$3"
        printf '  expected: %q\n  actual:   %q\n' "$2" "$1"
    fi
}

# like TEXT PATTERN NAME: an extended regular expression matches a line of it
like()
{
    if grep -Eq -- "$2" <<< "$1"; then
        pass "$3"
    else
        fail "$3"
        printf '  pattern: %s\n  text:    %s\n' "$2" "$1"
    fi
}

unlike()
{
    if grep -Eq -- "$2" <<< "$1"; then
        fail "$3"
        printf '  not to be found: %s\n  text:            %s\n' "$2" "$1"
    else
        pass "$3"
    fi
}

# exits STATUS NAME COMMAND...: runs it; leaves its output in $out and $err
exits()
{
    local expected=$1 name=$2 status
    shift 2
    "$@" > "$folder/out" 2> "$folder/err"
    status=$?
    out=$(tr -d '\0' < "$folder/out")
    err=$(cat "$folder/err")
    if [ "$status" = "$expected" ]; then
        pass "$name"
    else
        fail "$name"
        printf '  expected exit status %s, not %s, of: %s\n' "$expected" "$status" "$*"
        printf '  out: %s\n  err: %s\n' "$out" "$err"
    fi
}

finish()
{
    echo "1..$n_checks"
    [ "$n_failed" = 0 ] || exit 1
    exit 0
}

# ------------------------------------------------------------------------- waits

# until_true NAME COMMAND...: waits until COMMAND succeeds, ten seconds at most
until_true()
{
    local name=$1 deadline=$((SECONDS + 10))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            fail "$name (waited ten seconds)"
            return 1
        fi
        sleep 0.02
    done
}

# start COMMAND...: in the background, output in $folder/N.out and N.err; $! is its
# number, and it is killed at the end
start()
{
    # now, and not when the new process comes to it: what is said is looked for there
    : > "$folder/started.out"
    : > "$folder/started.err"
    "$@" > "$folder/started.out" 2> "$folder/started.err" < /dev/null &
    started+=("$!")
}

# ended PID STATUS NAME: waits for one that was started
ended()
{
    local status
    until_true "$3: ends" gone "$1" || return
    wait "$1" 2> /dev/null
    status=$?
    is "$status" "$2" "$3"
}

# Is no process of that number there, or only what its parent has not collected yet?
gone()
{
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2> /dev/null)
    [ -z "$state" ] || [ "$state" = Z ] || [ "$state" = X ]
}

alive()
{
    ! gone "$1"
}

# catches SIGNAL PID: it is dblock, and not still the shell that becomes it, and has
# its handler in place
catches()
{
    local caught
    [ "/proc/$2/exe" -ef "$DBLOCK" ] || return
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$2/status" 2> /dev/null)
    [ -n "$caught" ] && [ $((0x$caught >> ($(kill -l "$1") - 1) & 1)) = 1 ]
}

exists()
{
    [ -s "$1" ]
}

is_held()
{
    "$DBLOCK" show -q "$@" 2> /dev/null
}

is_free()
{
    "$DBLOCK" show -q "$@" 2> /dev/null
    [ $? = 1 ]
}

# --------------------------------------------------------------------- databases

# A new database for this script.
use_sqlite()
{
    database=sqlite
    export DBLOCK_URL=sqlite:$folder/lock.db
    "$DBLOCK" init -q || exit 1
}

# has_driver postgresql|mysql|sqlite: is it built?
has_driver()
{
    "$DBLOCK" schema "$1" > /dev/null 2>&1
}

# Names of this script on a server that others use as well.
name=cli-$$-$RANDOM

# for_each_database FUNCTION: with SQLite, and with the servers that are there
for_each_database()
{
    use_sqlite
    "$1"
    if [ -n "${DBLOCK_TEST_PGSQL:-}" ]; then
        use_server pgsql "$DBLOCK_TEST_PGSQL"
        "$1"
    fi
    if [ -n "${DBLOCK_TEST_MYSQL:-}" ]; then
        use_server mysql "$DBLOCK_TEST_MYSQL"
        "$1"
    fi
}

use_server()
{
    database=$1
    export DBLOCK_URL=$2
    "$DBLOCK" init -q || exit 1
}

# --------------------------------------------------------------------------- JSON

# json EXPRESSION: of the document in $out, with jq; without it, says so once
has_jq=$(command -v jq || true)
json()
{
    [ -n "$has_jq" ] || { echo "jq is not here"; return; }
    jq -r "$1" <<< "$out" 2>&1
}

# valid_json NAME: $out is a document of dblock.schema.json, as far as there is
# something here that can tell
valid_json()
{
    printf '%s\n' "$out" > "$folder/document.json"
    if python3 -c 'import jsonschema' 2> /dev/null; then
        check "$1: is as in the schema" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator(schema).validate(json.load(open(sys.argv[2])))
' "$here/src/cli/dblock.schema.json" "$folder/document.json"
    elif command -v python3 > /dev/null; then
        check "$1: is JSON" python3 -m json.tool "$folder/document.json" /dev/null
    elif [ -n "$has_jq" ]; then
        check "$1: is JSON" jq -e . "$folder/document.json" > /dev/null
    else
        echo "# SKIP $1: neither python3 nor jq is here"
    fi
}
