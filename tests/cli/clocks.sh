#!/bin/bash
# SPDX-License-Identifier: MIT
# clocks.sh - machines whose clocks are hours apart use one database. PITFALL(B1): who compares
# with a clock of his own takes a lock that is held, or loses one that he has. Runs beside
# others.
. "$(dirname "$0")/lib/cli.sh"

# The clock of COMMAND is wrong as well, which matters to nobody.
at()
{
    local shift=$1
    shift
    # a sanitizer would be the first library that is loaded
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 DONT_FAKE_MONOTONIC=1 faketime "$shift" "$@"
}

# That the clocks are wrong at all.
apart=$(($(at '+2 hours' date +%s) - $(at '-2 hours' date +%s)))
check 'the clocks are four hours apart' [ "$apart" -ge 14399 -a "$apart" -le 14460 ]

# apart STRATEGY HOLDER RIVAL: the one holds for longer than his ttl, the other waits for him
apart()
{
    local strategy=$1 holder=$2 rival=$3
    on="$database $strategy, $holder and $rival"
    rm -f "$folder/ready" "$folder/over" "$folder/first"
    # shellcheck disable=SC2016 # for the shell inside
    start at "$holder" "$DBLOCK" run -S "$strategy" -t 1 "$name" -c \
        `# sleeps because it is to be held beyond its ttl` \
        'echo "$DBLOCK_TOKEN" > "$HOME/first"; echo > "$HOME/ready"; sleep 1.4; echo > "$HOME/over"'
    pid=$!
    until_true "$on: COMMAND runs" exists "$folder/ready" || return
    exits 75 "$on: busy" at "$rival" "$DBLOCK" run -n -S "$strategy" "$name" true
    # shellcheck disable=SC2016
    exits 0 "$on: granted, and not before he has ended" at "$rival" \
        "$DBLOCK" run -w 9 -S "$strategy" "$name" -c 'test -s "$HOME/over" && echo "$DBLOCK_TOKEN"'
    check "$on: with a larger token" [ "${out:-0}" -gt "$(cat "$folder/first")" ]
    ended "$pid" 0 "$on: he keeps it beyond his ttl"
}

# A file has one machine, and that one clock.
both_ways()
{
    [ "$database" != sqlite ] || return
    apart lease '+2 hours' '-2 hours'
    apart insert '-2 hours' '+2 hours'
}

for_each_database both_ways
finish
