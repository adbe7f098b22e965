#!/bin/bash
# SPDX-License-Identifier: MIT
# busy.sh - somebody else holds the lock: exclusion, waiting and its limits, what is
# said, signals while waiting. PITFALL(H5), PITFALL(H10). Runs beside others. Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

with_strategies()
{
    local strategy holder before
    for strategy in lease insert row advisory; do
        on="$database $strategy"
        start "$DBLOCK" run -S $strategy -l 'the "first"' "$name" -- sleep 60
        holder=$!
        until_true "$on: taken" is_held -S $strategy "$name" || continue

        exits 75 "$on: -n" "$DBLOCK" run -n -S $strategy "$name" -- touch "$folder/ran"
        is "$err" '' "$on: and says nothing"
        exits 75 "$on: -w 0" "$DBLOCK" run -w 0 -S $strategy "$name" -- touch "$folder/ran"
        before=$(date +%s%N)
        exits 75 "$on: -w 0.2" "$DBLOCK" run -w 0.2 -S $strategy "$name" -- touch "$folder/ran"
        spent=$((($(date +%s%N) - before) / 1000000))
        check "$on: -w 0.2 takes 0.2 s and not much more ($spent ms)" \
            [ "$spent" -ge 200 -a "$spent" -lt 3000 ]
        exits 9 "$on: -E 9" "$DBLOCK" run -n -E 9 -S $strategy "$name" true
        exits 0 "$on: -E 0" "$DBLOCK" run -n -E 0 -S $strategy "$name" -- touch "$folder/ran"
        exits 75 "$on: -v" "$DBLOCK" run -nv -S $strategy "$name" true
        like "$err" "^dblock: \"$name\" is held by .*$strategy.*; not run\$" "$on: says who holds it"
        exits 75 "$on: report" "$DBLOCK" run -n --report "$folder/report" -S $strategy "$name" true
        out=$(cat "$folder/report")
        valid_json "$on: report"
        is "$(json '[.outcome, .exit_from, .holder.strategy] | @json')" \
            "[\"busy\",\"dblock\",\"$strategy\"]" "$on: the report has the holder"
        check "$on: COMMAND has not run" [ ! -e "$folder/ran" ]

        # A signal ends a wait at once, whatever the limit.
        for signal in TERM:143 INT:130 HUP:129 USR1:138; do
            start "$DBLOCK" run -w 3650d -S $strategy "$name" -- touch "$folder/ran"
            waiter=$!
            until_true "$on: waits" catches TERM "$waiter"
            kill -s "${signal%:*}" "$waiter"
            ended "$waiter" "${signal#*:}" "$on: ${signal%:*} ends a wait"
        done
        check "$on: COMMAND has not run" [ ! -e "$folder/ran" ]

        # The lock goes to one who waits.
        start "$DBLOCK" run -w 30 -S $strategy "$name" -- touch "$folder/next"
        waiter=$!
        until_true "$on: waits" catches TERM "$waiter"
        check "$on: COMMAND waits" [ ! -e "$folder/next" ]
        kill -TERM "$holder"
        ended "$holder" 143 "$on: the holder ends by TERM"
        ended "$waiter" 0 "$on: the next one runs"
        check "$on: COMMAND has run" [ -e "$folder/next" ]
        rm -f "$folder/next" "$folder/ran"
    done
}

for_each_database with_strategies

use_sqlite
# Eight processes and a counter that only the lock protects.
echo 0 > "$folder/counter"
for _ in 1 2 3 4 5 6 7 8; do
    start "$DBLOCK" run counter -c 'for i in 1 2 3 4 5; do
        n=$(cat "$HOME/counter"); echo $((n + 1)) > "$HOME/counter"; done'
done
for pid in "${started[@]: -8}"; do
    wait "$pid"
done
is "$(cat "$folder/counter")" 40 'eight runs at once: never two together'

# Strategies do not know of each other.
exits 0 'another strategy' "$DBLOCK" run -S lease x -- "$DBLOCK" run -n -S insert x -- true
exits 0 '--id' "$DBLOCK" run -S advisory --id 4711 x -- "$DBLOCK" run -n -E 9 -S advisory x -- true
exits 9 '--id is what counts' "$DBLOCK" run -S advisory --id 4711 x -- \
    "$DBLOCK" run -n -E 9 -S advisory --id 4711 y -- true
exits 0 '--id may be negative' "$DBLOCK" run -S advisory --id -9223372036854775808 x -- true

# One's own name again, from inside.
for strategy in lease insert; do
    exits 75 "$strategy: one's own name" "$DBLOCK" run -S $strategy x -- "$DBLOCK" run -S $strategy x -- true
    like "$err" "held by this command's own parent" "$strategy: does not wait for ever"
done
exits 0 'names are compared byte by byte' "$DBLOCK" run x -- "$DBLOCK" run -n X -- true
finish
