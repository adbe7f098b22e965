#!/bin/bash
# SPDX-License-Identifier: MIT
# bench.sh - the command measures, tells what it saw in three ways, and leaves nothing
# behind, however it ends. Not how fast anything is. Runs beside others. Starts first.
# Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

# Short, and few: what is asked here is whether it works.
quick='--seconds 0.15 -c 3 --leases 20'

# No lock of a run is held, and no process of one is left.
nothing_is_left()
{
    exits 0 "$1: list" "$DBLOCK" list -q dblock-bench/
    is "$out" '' "$1: no lock is held"
}

# well_formed FILE
well_formed()
{
    if command -v xmllint > /dev/null; then
        xmllint --noout "$1"
    else
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
    fi
}

measures()
{
    on=$database
    # shellcheck disable=SC2086 # several words are meant
    exits 0 "$on: bench" "$DBLOCK" bench -y $quick
    like "$err" 'measures lease, insert, row, advisory in .*, each for 150 ms' "$on: says what it will do"
    like "$err" 'for about [0-9.]+ s, [0-9]+ s at most; all names begin with dblock-bench/[0-9]+-[0-9a-f]{8}/ ' \
        "$on: for how long, and under which names"
    is "$(grep -c '^lease  ' <<< "$out")" 5 "$on: a lease is in five lines"
    for strategy in insert row advisory; do
        is "$(grep -c "^$strategy  " <<< "$out")" 4 "$on: $strategy is in four"
    done
    like "$out" '^strategy +pairs/s +p50 +p99 +max$' "$on: the columns have heads"
    like "$out" '^lease +[0-9.]+ +[0-9.]+ [num]?s +[0-9.]+ [num]?s +[0-9.]+ [num]?s$' "$on: and figures with units"
    like "$out" '^violations of exclusion: 0$' "$on: nobody was in the other's way"
    is "$(awk '/^strategy/ { head = length() } /^(lease|insert|row|advisory) / && length() != head' <<< "$out")" '' \
        "$on: and lines of one length"
    nothing_is_left "$on: bench"

    # shellcheck disable=SC2086
    exits 0 "$on: bench --json" "$DBLOCK" bench -q -y --json $quick --svg "$folder/$on.svg"
    is "$err" '' "$on: -q is quiet"
    valid_json "$on: bench"
    is "$(json '[.kind, .part_ms, .violations, .fair, (.strategies | map(.strategy))] | @json')" \
        '["bench",150,0,false,["lease","insert","row","advisory"]]' "$on: all strategies"
    is "$(json '.strategies | map(.alone.pair.count > 0 and .alone.pairs_per_s > 0
        and .alone.pair.p50_ns <= .alone.pair.p99_ns and .alone.pair.p99_ns <= .alone.pair.max_ns) | all')" \
        true "$on: pairs were made"
    is "$(json '.strategies | map(.contention | .clients == 3 and .grants >= .changes and .changes > 0
        and .most >= .least and .grants >= .most and .grants <= 3 * .most and .jain <= 1
        and .jain > 0.333) | all')" true "$on: figures of contention fit together"
    is "$(json '.strategies | map(.hand_over | map([.waiters, .missed])) | unique | @json')" \
        '[[[2,0],[3,0]]]' "$on: hand-overs with 2 and 3 waiters, all seen"
    is "$(json '.strategies | map(.hand_over | map(.latency.count) | add > 0) | all')" true \
        "$on: there were some"
    is "$(json '.strategies | map(.heartbeat.leases) | @json')" '[20,null,null,null]' \
        "$on: only leases have heartbeats"
    check "$on: the drawing is XML" well_formed "$folder/$on.svg"
    is "$(grep -c 'class="head"' "$folder/$on.svg")" 4 "$on: has a panel for each strategy"
    check "$on: and curves" test "$(grep -c '<title>hand-over, 3 waiters' "$folder/$on.svg")" = 4
    nothing_is_left "$on: bench --json"

    exits 0 "$on: some strategies" "$DBLOCK" bench -q -y --json -S row -S advisory --seconds 0.1 -c 2
    is "$(json '.strategies | map(.strategy) | @json')" '["row","advisory"]' "$on: are measured"
    is "$(json '.strategies | map(.hand_over | length) | @json')" '[1,1]' "$on: two waiters, once"

    # Ended by a signal, in each of its parts.
    for part in 'acquire and release' contention hand-over heartbeats; do
        start "$DBLOCK" bench -v -y -S lease --seconds 0.3 -c 3 --svg "$folder/ended.svg"
        pid=$!
        until_true "$on: $part" grep -q "lease: $part" "$folder/started.err" || continue
        kill -INT "$pid"
        ended "$pid" 130 "$on: INT ends it, at $part"
        is "$(cat "$folder/started.out")" '' "$on: without figures"
        nothing_is_left "$on: after a signal"
    done
    is "$(compgen -G "$folder/ended.svg*")" '' "$on: nor a half-made drawing"
}

for_each_database measures

# A pooler gives the server's session to others, so one strategy is not to be had there.
if [ -n "${DBLOCK_TEST_PGBOUNCER:-}" ]; then
    use_server pgbouncer "$DBLOCK_TEST_PGBOUNCER"
    exits 0 'what is not to be had' "$DBLOCK" bench -q -y --json --seconds 0.1 -c 2
    valid_json 'what is not to be had'
    is "$(json '.strategies | map(select(.left_out != null)) | map([.strategy, .alone]) | @json')" \
        '[["advisory",null]]' 'is left out'
    exits 0 'for people' "$DBLOCK" bench -q -y --seconds 0.1 -c 2
    like "$out" '^advisory is left out: .*pooler' 'and said to be'
    exits 78 'what was asked for' "$DBLOCK" bench -q -y -S advisory
    like "$err" 'pooler' 'is refused'
fi

# ---------------------------------------------------------------------- endings

use_sqlite
exits 0 'too short for a heartbeat' "$DBLOCK" bench -q -y -S lease --seconds 0.1 -c 2 --leases 1
# on a machine that is slow enough there is one
like "$out" '^lease +1 +[1-9]|^none was due in that time, as one comes every .*; give more --seconds' \
    'is said to be'
members_of()
{
    cat "/proc/$1/task/$1/children"
}
has_members()
{
    [ -n "$(members_of "$1")" ]
}
start "$DBLOCK" bench -q -y -c 3 --seconds 30
pid=$!
until_true 'it is at work' has_members "$pid"
kill -TERM "$pid"
ended "$pid" 143 'TERM ends it'
nothing_is_left 'after TERM'

# kill -9: its clients notice, and give back what they hold.
is_at_work()
{
    [ -n "$("$DBLOCK" list -q dblock-bench/)" ]
}
start "$DBLOCK" bench -q -y -S lease -c 3 --seconds 30
pid=$!
until_true 'it holds locks' is_at_work
members=$(members_of "$pid")
kill -KILL "$pid"
ended "$pid" 137 'it is killed'
for member in $members; do
    until_true 'its clients end' gone "$member" && pass 'its clients end'
done
nothing_is_left 'after kill -9'

# A client is killed.
start "$DBLOCK" bench -y -S insert -c 3 --seconds 30
pid=$!
until_true 'it is at work' has_members "$pid"
kill -KILL "$(members_of "$pid")"
ended "$pid" 71 'a client that is killed ends it'
like "$(cat "$folder/started.err")" 'ended before its time' 'is said'
nothing_is_left 'after a client was killed'

# Two holders: somebody breaks the lock while another is at work with it.
start "$DBLOCK" bench -q -y -S lease -c 3 --seconds 1.5 --leases 1 --json
pid=$!
while alive "$pid"; do
    broken=$("$DBLOCK" list -q dblock-bench/ | grep '/lock$' | head -n 1)
    [ -z "$broken" ] || "$DBLOCK" break -q -y -S lease "$broken" > /dev/null 2>&1
done
ended "$pid" 70 'two holders at once are noticed'
like "$(cat "$folder/started.err")" 'held by two at once' 'are said'
out=$(cat "$folder/started.out")
valid_json 'bench with violations'
is "$(json '.violations > 0 and .strategies[0].lost > 0')" true 'and counted'

# --------------------------------------------------------- what it cannot begin

exits 64 'without a terminal' "$DBLOCK" bench
like "$err" '-y is needed' 'says what is missing'
for bad in '-c 1' '-c 501' '-c x' '--seconds 0' '--seconds 0.05' '--seconds 2h' '--seconds x' '--leases 0' \
    '--leases 100001' '-S mutex' '--svg=' '-t 5' '-n' 'name'; do
    # shellcheck disable=SC2086
    exits 64 "bench $bad" "$DBLOCK" bench -y $bad
done
begun=$SECONDS
exits 71 'a drawing in no folder' "$DBLOCK" bench -y --svg "$folder/none/x.svg"
like "$err" "cannot make $folder/none/x.svg.*: No such file.*nothing is measured" 'is said'
is "$out" '' 'at once'
exits 78 'no such database' "$DBLOCK" bench -d "sqlite:$folder/none.db" -y --svg "$folder/x.svg"
like "$err" 'nothing is measured' 'is said'
exits 69 'no server' "$DBLOCK" bench -d postgresql://127.0.0.1:1/d -y
exits 78 'no database named' env -u DBLOCK_URL "$DBLOCK" bench -y
exits 71 'a full disk' bash -c '"$DBLOCK" bench -q -y --seconds 0.1 -c 2 -S advisory > /dev/full'
check 'none of these takes long' test $((SECONDS - begun)) -lt 20
is "$(compgen -G "$folder/x.svg*")" '' 'nor leaves a drawing'

# A database that may only be read; root may write anyway, so as another user then.
as_user=
if [ "$(id -u)" = 0 ]; then
    as_user='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
mkdir "$folder/read-only"
"$DBLOCK" init -q -d "sqlite:$folder/read-only/lock.db"
chmod 711 "$folder"
chmod 444 "$folder"/read-only/*
chmod 555 "$folder/read-only"
# shellcheck disable=SC2086
if ! $as_user "$DBLOCK" -V > /dev/null 2>&1; then
    echo '# SKIP read-only: no other user than root can run the command here'
else
    "$DBLOCK" list -d "sqlite:$folder/read-only/lock.db" > "$folder/out" 2> "$folder/err"
    exits 77 'a read-only database' $as_user "$DBLOCK" bench -y -d "sqlite:$folder/read-only/lock.db"
    is "$out" '' 'has no figures'
fi
chmod 755 "$folder/read-only"

# A database that does not answer: it ends within what it has announced.
if command -v sqlite3 > /dev/null; then
    mkfifo "$folder/statements"
    sqlite3 "$folder/lock.db" < "$folder/statements" > "$folder/answers" 2>&1 &
    started+=("$!")
    exec 8> "$folder/statements"
    echo 'BEGIN EXCLUSIVE; SELECT 7;' >&8
    until_true 'somebody keeps the database' exists "$folder/answers"
    begun=$SECONDS
    exits 69 'a database that does not answer' "$DBLOCK" bench -y -S lease --seconds 0.2 -c 2
    limit=$(sed -n 's/.* \([0-9]*\) s at most.*/\1/p' <<< "$err")
    check "ends it within ${limit:-?} s" test $((SECONDS - begun)) -le "${limit:-0}"
    exec 8>&-
else
    echo '# SKIP a database that does not answer: sqlite3 is not here'
fi

# -------------------------------------------------------------------- a terminal

if command -v script > /dev/null; then
    mkfifo "$folder/keys"
    on_terminal()
    {
        : > "$folder/started.out"
        start bash -c "TERM=dumb exec script -qefc 'exec \"\$DBLOCK\" bench $1' /dev/null < '$folder/keys'"
        terminal=$!
        exec 9> "$folder/keys"
        until_true "bench $1: asks" grep -q 'Go on? \[y/N\]' "$folder/started.out" && pass "bench $1: asks"
        printf '%s' "$2" >&9
    }
    on_terminal '-S advisory --seconds 1 -c 3' $'n\n'
    ended "$terminal" 1 'no is no'
    exec 9>&-
    on_terminal '-S advisory --seconds 1 -c 3' $'\003'
    ended "$terminal" 1 'control-C is no as well'
    exec 9>&-
    on_terminal '-S advisory --seconds 1 -c 3' $'y\n'
    ended "$terminal" 0 'yes measures'
    exec 9>&-
    screen=$(tr '\r' '\n' < "$folder/started.out")
    like "$screen" '^advisory: (contention|hand-over); [0-9] of about 4 s' 'and shows how far it is'
    like "$screen" '^violations of exclusion: 0' 'and then the figures'
    nothing_is_left 'on a terminal'
    # Control-C reaches its clients as well.
    on_terminal '-S lease --seconds 20 -c 3' $'y\n'
    until_true 'it holds locks' is_at_work
    printf '\003' >&9
    ended "$terminal" 130 'control-C ends it'
    exec 9>&-
    nothing_is_left 'after control-C'
else
    echo '# SKIP the terminal: script(1) is not here'
fi
finish
