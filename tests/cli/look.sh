#!/bin/bash
# SPDX-License-Identifier: MIT
# look.sh - show, list and break: what they tell, to people and to programs. Runs
# beside others. Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

look()
{
    on=$database
    export DBLOCK_TEST_NAME=$name
    exits 1 "$on: show of what nobody holds" "$DBLOCK" show "$name"
    is "$out" "$name  not held" "$on: says so"
    exits 1 "$on: show --json" "$DBLOCK" show --json "$name"
    valid_json "$on: show of nothing"
    is "$(json '.held | length')" 0 "$on: has none"

    exits 0 "$on: show of a lease" "$DBLOCK" run -l nightly "$name" -- "$DBLOCK" show "$name"
    like "$out" "^$name  lease  [^ ]+ pid [0-9]+  since [0-9:]+ \(.*\)  renewed, .* left  token [0-9]+  \"nightly\"$" \
        "$on: one line says all"
    exits 0 "$on: show -q" "$DBLOCK" run "$name" -- "$DBLOCK" show -q "$name"
    is "$out" '' "$on: says nothing"
    exits 0 "$on: show --json" "$DBLOCK" run -l nightly "$name" -- "$DBLOCK" show --json "$name"
    valid_json "$on: show"
    is "$(json '.held[0] | [.name, .strategy, .mode, .label, .heartbeat, .permits] | @json')" \
        "[\"$name\",\"lease\",\"exclusive\",\"nightly\",true,null]" "$on: has the grant"
    like "$(json .now)" '^20[0-9-]{8}T[0-9:]{8}\.[0-9]{6}Z$' "$on: has the time of the database"

    # Two strategies, one name.
    exits 0 "$on: two strategies" "$DBLOCK" run "$name" -- \
        "$DBLOCK" run -S insert "$name" -- "$DBLOCK" show "$name"
    like "$out" 'more than one strategy' "$on: are pointed out"
    exits 0 "$on: show -S" "$DBLOCK" run "$name" -- \
        "$DBLOCK" run -S insert "$name" -- "$DBLOCK" show -S insert "$name"
    unlike "$out" lease "$on: shows one"
    exits 64 "$on: break of one of two" "$DBLOCK" run "$name" -- \
        "$DBLOCK" run -S insert "$name" -- "$DBLOCK" break -y "$name"
    like "$err" 'held under lease and insert; say which with -S' "$on: wants to know which"
    exits 64 "$on: break of one of three" "$DBLOCK" run "$name" -- "$DBLOCK" run -S insert "$name" -- \
        "$DBLOCK" run -S advisory "$name" -- "$DBLOCK" break -y "$name"
    like "$err" 'held under lease, insert and advisory; say' "$on: has all of them"

    # list
    exits 0 "$on: list" "$DBLOCK" run "$name.1" -- "$DBLOCK" run -S insert "$name.2" -- \
        "$DBLOCK" run -S row "$name.3" -- "$DBLOCK" list "$name."
    is "$(wc -l <<< "$out")" 3 "$on: has three lines"
    exits 0 "$on: list -q" "$DBLOCK" run "$name.1" -- "$DBLOCK" run -S insert "$name.2" -- \
        "$DBLOCK" list -q "$name."
    is "$out" "$name.1
$name.2" "$on: has the names"
    exits 0 "$on: list -S -l --json" "$DBLOCK" run "$name.1" -- "$DBLOCK" run "$name.2" -- \
        "$DBLOCK" list -S lease -l 1 --json "$name."
    valid_json "$on: list"
    is "$(json '[.truncated, (.locks | length), .locks[0].name] | @json')" "[true,1,\"$name.1\"]" \
        "$on: is cut"
    exits 0 "$on: list --host" "$DBLOCK" run "$name.1" -- "$DBLOCK" list --host no-such-host "$name."
    is "$out" '' "$on: another machine has none"
    exits 0 "$on: list of nothing" "$DBLOCK" list "$name."
    is "$out" '' "$on: is empty"
    exits 0 "$on: list -a" "$DBLOCK" list -a -S lease "$name.1"
    like "$out" "^$name.1  lease  not held" "$on: has names that nobody holds"

    # Names and labels of others.
    odd=$name$'\n\e[31m\\\u202e'
    exits 0 "$on: an odd name" "$DBLOCK" run -l $'a\tb\u0085' "$odd" -- "$DBLOCK" list "$name"
    is "$(wc -l <<< "$out")" 1 "$on: is one line"
    like "$out" "^\"$name"'\\n\\x1b\[31m\\\\\\xe2\\x80\\xae"  lease .* "a\\tb\\xc2\\x85"$' "$on: is escaped"
    exits 0 "$on: a name with blanks" "$DBLOCK" run -l 'say "x"' "$name \"a\"  " -- "$DBLOCK" list "$name "
    like "$out" "^\"$name .\"a.\"  \"  lease .*  \"say .\"x.\"\"$" "$on: is in quotes"
    like "$out" '"a\\"  "  lease .*"say \\"x\\""$' "$on: with those inside escaped"
    exits 1 "$on: show of a name with a blank at its end" "$DBLOCK" show "$name "
    is "$out" "\"$name \"  not held" "$on: is in quotes too"
    exits 0 "$on: as JSON" "$DBLOCK" run "$odd" -- "$DBLOCK" list --json "$name"
    valid_json "$on: an odd name"
    is "$(json '.locks[0].name')" "$odd" "$on: is itself"
    "$DBLOCK" run "$odd" -- "$DBLOCK" list -0 "$name" > "$folder/null"
    check "$on: list -0 has the bytes" cmp -s "$folder/null" <(printf '%s\0' "$odd")

    # break
    exits 1 "$on: break of nothing" "$DBLOCK" break -y "$name"
    exits 1 "$on: break --json of nothing" "$DBLOCK" break --json -y "$name"
    valid_json "$on: break"
    "$DBLOCK" acquire -t 60 "$name" > "$folder/grant"
    exits 64 "$on: break without a terminal" "$DBLOCK" break "$name"
    exits 1 "$on: break -T of another" "$DBLOCK" break -y -T 1 "$name"
    check "$on: is still held" is_held "$name"
    out=$("$DBLOCK" show --json "$name")
    exits 0 "$on: break -T" "$DBLOCK" break -y -T "$(json '.held[0].token')" "$name"
    like "$out" "^\"$name\" is ended; it was held by " "$on: says whom it ended"
    check "$on: is free" is_free "$name"
}

for_each_database look

# What dblock(7) says to other software about the names of advisory locks at the server.
# as_the_page_says STATEMENT TAKEN BUSY ASK...: of a name that is free, and of one that is held
as_the_page_says()
{
    local statement=${1//\'job\'/\'$name\'}
    export statement name
    exits 0 "$database: the statement of dblock(7)" "${@:4}"
    is "$out" "$2" "$database: takes a name that is free"
    exits 0 "$database: the same of a name that is held" "$DBLOCK" run -S advisory "$name" -- "${@:4}"
    is "$out" "$3" "$database: meets our lock"
}

page=$here/src/man/dblock.7
if [ -n "${DBLOCK_TEST_PGSQL:-}" ] && command -v psql > /dev/null; then
    use_server pgsql "$DBLOCK_TEST_PGSQL"
    ask() { psql -qAtX -d "$DBLOCK_URL" -c "$statement"; }
    export -f ask
    statement=$(sed -n 's/^\.Dl \(SELECT pg_\)\(advisory_lock.*\)/\1try_\2/p' "$page")
    as_the_page_says "$statement" t f bash -c ask
fi
if [ -n "${DBLOCK_TEST_MYSQL:-}" ] && command -v mariadb > /dev/null; then
    use_server mysql "$DBLOCK_TEST_MYSQL"
    ask()
    {
        local at=${DBLOCK_URL#mysql://}
        local user=${at%%:*} rest=${at#*:}
        local word=${rest%%@*} place=${rest#*@}
        local server=${place%%/*}
        MYSQL_PWD=$word mariadb --no-defaults -N -u "$user" -h "${server%:*}" -P "${server#*:}" \
            -e "$statement" "$(sed 's/[?].*//' <<< "${place#*/}")"
    }
    export -f ask
    statement=$(sed -n '/^ *SELECT GET_LOCK/,/)$/p' "$page" | tr '\n' ' ' | sed 's/, 10)/, 0)/')
    as_the_page_says "$statement" 1 0 bash -c ask
fi

use_sqlite
# -q with --json
exits 0 'list -q --json' "$DBLOCK" list -q --json
valid_json 'list -q'
exits 1 'show -q --json' "$DBLOCK" show -q --json x
valid_json 'show -q'
# show -w
exits 0 'show -w of what is free' "$DBLOCK" show -q -w 0 x
"$DBLOCK" acquire -t 60 x > "$folder/grant"
exits 75 'show -w 0' "$DBLOCK" show -q -w 0 x
exits 75 'show -w 0.1' "$DBLOCK" show -q -w 0.1 x
start "$DBLOCK" show -q -w 60 x
pid=$!
exits 0 'release' "$DBLOCK" release "$(cat "$folder/grant")"
ended "$pid" 0 'show -w ends when it is free'
exits 71 'a full disk' bash -c '"$DBLOCK" list -a > /dev/full'
finish
