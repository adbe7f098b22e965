#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh - dblock run while all goes well: exit statuses, environment, descriptors,
# standard input, each strategy, each database. PITFALL(H4). Runs beside others. Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

for_each_strategy()
{
    local strategy
    for strategy in lease insert row advisory; do
        on="$database $strategy"
        exits 0 "$on: true" "$DBLOCK" run -n -S $strategy "$name" -- true
        exits 1 "$on: false" "$DBLOCK" run -n -S $strategy "$name" false
        exits 255 "$on: 255" "$DBLOCK" run -n -S $strategy "$name" -c 'exit 255'
        exits 75 "$on: COMMAND's own 75" "$DBLOCK" run -n -S $strategy "$name" -c 'exit 75'
        # PITFALL(E5): its heartbeats end with COMMAND; each of these has the name at once
        exits 137 "$on: KILL" "$DBLOCK" run -n -S $strategy "$name" -c 'kill -KILL $$'
        exits 143 "$on: TERM" "$DBLOCK" run -n -S $strategy "$name" -c 'kill -TERM $$'
        exits 139 "$on: SEGV" "$DBLOCK" run -n -S $strategy "$name" -c 'ulimit -c 0; kill -SEGV $$'
        is "$err" '' "$on: dblock says nothing"

        exits 0 "$on: environment" "$DBLOCK" run -n -S $strategy -l 'a label' "$name" -c \
            'env; "$DBLOCK" show --json "$DBLOCK_NAME" > "$HOME/show"'
        like "$out" "^DBLOCK_NAME=$name\$" "$on: DBLOCK_NAME"
        like "$out" '^DBLOCK_OWNER=[0-9a-f]{32}$' "$on: DBLOCK_OWNER"
        like "$out" '^DBLOCK_TOKEN=[1-9][0-9]*$' "$on: DBLOCK_TOKEN"
        token=$(sed -n 's/^DBLOCK_TOKEN=//p' <<< "$out")
        check "$on: the token grows" [ "$token" -gt "${last_token:-0}" ]
        last_token=$token
        case $strategy in
        lease | insert) like "$out" '^DBLOCK_GRANT=..' "$on: DBLOCK_GRANT" ;;
        *) unlike "$out" '^DBLOCK_GRANT=' "$on: no DBLOCK_GRANT" ;;
        esac
        case $strategy in
        lease | insert)
            exits 64 "$on: COMMAND's own lock is not released by mistake" "$DBLOCK" run -n \
                -S $strategy "$name" -- "$DBLOCK" release
            like "$err" 'when COMMAND ends' "$on: and why is said"
            ;;
        esac
        out=$(cat "$folder/show")
        valid_json "$on: show"
        is "$(json '.held | length')" 1 "$on: one holder is shown"
        is "$(json '.held[0].strategy')" $strategy "$on: its strategy is shown"
        check "$on: free afterwards" is_free "$name"
        last_token=0
    done
}

read_only()
{
    # What needs no table is had there, without a token.
    exits 0 "$database advisory where transactions only read" env \
        PGOPTIONS='-c default_transaction_read_only=on' "$DBLOCK" run -v -S advisory "$name" -- \
        sh -c 'echo "${DBLOCK_TOKEN-none}"'
    is "$out" none "$database advisory where transactions only read: no token"
    like "$err" 'no DBLOCK_TOKEN: .*read-only' 'and why is said'
}

if [ -n "${DBLOCK_TEST_PGSQL:-}" ]; then
    use_server pgsql "$DBLOCK_TEST_PGSQL"
    read_only
fi
for_each_database for_each_strategy

use_sqlite
exits 0 'standard input' "$DBLOCK" run x -- cat <<< 'from here'
is "$out" 'from here' 'reaches COMMAND'
exits 0 'standard error' "$DBLOCK" run x -c 'echo there >&2'
is "$err" there 'is COMMAND'"'"'s'
exits 0 'closed standard descriptors' bash -c '"$DBLOCK" run x true <&- >&- 2>&-'
exits 0 'arguments' "$DBLOCK" run x -- printf '%s|' 'a b' '' '*' -- -n
is "$out" 'a b||*|--|-n|' 'are passed on as they are'
exits 0 'options end at NAME' "$DBLOCK" run x printf %s -n
is "$out" -n 'what follows is COMMAND'"'"'s'
exits 0 'a text without "#!"' "$DBLOCK" run x "$(printf 'echo run by sh\n' > "$folder/text" &&
    chmod +x "$folder/text" && echo "$folder/text")"
is "$out" 'run by sh' 'is run by the shell'
printf '#!/no/such/interpreter\n' > "$folder/text"
exits 127 'a text whose interpreter is missing' "$DBLOCK" run x "$folder/text"
exits 0 'and the lock is free' "$DBLOCK" run -n x true
exits 0 'PATH of the caller' env PATH="$folder:$PATH" "$DBLOCK" run x -- sh -c 'exit 0'

exits 0 'a ttl between two classes' "$DBLOCK" run -v -t 45 x true
like "$err" '-t is rounded down to 30 s' 'is said to be rounded'
exits 0 'half a second' "$DBLOCK" run -v -t 0.5 x true
unlike "$err" rounded 'is none'

# What a person wants to know, and what a programmer does.
exits 0 'run -v' "$DBLOCK" run -v -t 1 x -- sleep 1.2
like "$err" "^dblock: connected to sqlite:$folder/lock.db\$" 'says where it is connected'
like "$err" '^dblock: "x" is granted.*, token [0-9]+$' 'what was granted'
like "$err" '^dblock: "x" is released$' 'and released'
is "$(wc -l <<< "$err")" 3 'and nothing of each heartbeat'
"$DBLOCK" acquire -t 1 x > "$folder/grant"
exits 0 'run -v that waits' "$DBLOCK" run -v -w 10 x true
like "$err" '^dblock: "x" is held by .*; waiting$' 'says for whom'
like "$err" '^dblock: "x" is granted after' 'and how long'
is "$(wc -l <<< "$err")" 4 'and nothing of each attempt'
exits 0 'run -vv' "$DBLOCK" run -vv -t 1 x -- sleep 0.5
like "$err" '^dblock: attempt "x": done, token [0-9]+ \([0-9.]+ ms\)$' 'says each attempt'
like "$err" '^dblock: renew: done' 'and each heartbeat'
exits 0 'list -v' "$DBLOCK" list -v
like "$err" 'connected to' 'says where it is connected'

# Descriptors: none but those that are there without dblock.
descriptors='for d in /proc/self/fd/*; do readlink "$d"; done | grep -v "^/proc/" | sort'
for strategy in lease insert row advisory; do
    exits 0 "$strategy: descriptors" "$DBLOCK" run -S $strategy x -- bash -c "$descriptors"
    with=$(grep -v "^$folder/out\$" <<< "$out" | sed 's/:.*//')
    exits 0 "$strategy: descriptors without" bash -c "$descriptors"
    without=$(grep -v "^$folder/out\$" <<< "$out" | sed 's/:.*//')
    is "$with" "$without" "$strategy: COMMAND inherits no descriptor of ours"
done
# Without 32 and 33, which belong to the C library's threads. Of cat, as a shell changes its own.
signals()
{
    local key value
    while read -r key value; do
        case $key in Sig[BIC]*) echo "$key $((0x$value & ~(3 << 31)))" ;; esac
    done <<< "$out"
}
exits 0 'signal mask and dispositions' "$DBLOCK" run x -- cat /proc/self/status
with=$(signals)
exits 0 'signals without' cat /proc/self/status
without=$(signals)
like "$with" '^SigBlk: 0$' 'they are told'
is "$with" "$without" 'COMMAND has those of the caller'
exits 0 'an ignored signal' bash -c 'trap "" HUP; exec "$DBLOCK" run x -- sh -c "kill -HUP \$\$; echo alive"'
is "$out" alive 'stays ignored'

# Waiting, as far as nobody is in the way.
for wait in 0 0.2 3650d; do
    exits 0 "-w $wait" "$DBLOCK" run -w $wait x true
done

# The report.
exits 3 'a report' "$DBLOCK" run --report "$folder/report" x -c 'exit 3'
out=$(cat "$folder/report")
valid_json 'report'
is "$(json '[.outcome, .exit, .exit_from, .child.status, .child.signal, .holder, .error] | @json')" \
    '["ran",3,"child",3,null,null,null]' 'has the outcome'
exits 143 'a report of a signal' "$DBLOCK" run --report "$folder/report" x -c 'kill -TERM $$'
out=$(cat "$folder/report")
is "$(json '[.exit, .exit_from, .child.status, .child.signal] | @json')" \
    '[143,"child",null,"SIGTERM"]' 'has the signal'
# a device or a pipe is written to, and stays what it is
mkfifo "$folder/pipe"
cat "$folder/pipe" > "$folder/from-pipe" &
reader=$!
exits 0 'a report into a pipe' "$DBLOCK" run --report "$folder/pipe" x -- true
wait "$reader"
check 'the pipe is still one' [ -p "$folder/pipe" ]
check 'and the report went through it' grep -q '"outcome"' "$folder/from-pipe"
mkfifo "$folder/unread"
exits 71 'a pipe that nobody reads' timeout 60 "$DBLOCK" run --report "$folder/unread" x -- true
like "$err" 'nobody reads from it' 'is said'
ln -s target "$folder/link"
: > "$folder/target"
exits 0 'a report through a link' "$DBLOCK" run --report "$folder/link" x -- true
check 'the link is still one' [ -L "$folder/link" ]
check 'and its target has the report' grep -q '"outcome"' "$folder/target"
exits 71 'a report into a folder' "$DBLOCK" run --report "$folder" x -- touch "$folder/ran-not"
check 'not run' [ ! -e "$folder/ran-not" ]
exits 71 'a report that cannot be written' "$DBLOCK" run --report "$folder/no/report" x -- touch "$folder/ran"
check 'is noticed before COMMAND runs' [ ! -e "$folder/ran" ]
is "$(find "$folder" -name 'report.*')" '' 'nothing half-made is left'

# A database that is not ready, or not there.
export DBLOCK_URL=sqlite:$folder/empty.db
exits 78 'no tables' "$DBLOCK" run x -- touch "$folder/ran"
like "$err" 'dblock init' 'the cure is said'
export DBLOCK_URL=sqlite:$folder/no/folder/lock.db
"$DBLOCK" run x -- touch "$folder/ran" 2> /dev/null
check 'a path that is not there: COMMAND does not run' [ ! -e "$folder/ran" ]
for scheme in postgresql mysql; do
    if ! has_driver $scheme; then
        echo "# SKIP $scheme that cannot be reached: its driver is not built"
        continue
    fi
    export DBLOCK_URL=$scheme://u:p@127.0.0.1:1/d
    exits 69 "$scheme that cannot be reached" "$DBLOCK" run -n x -- touch "$folder/ran"
    like "$err" '127.0.0.1' 'is named'
    like "$err" 'not run' 'and what that means'
    check 'COMMAND does not run' [ ! -e "$folder/ran" ]
    for options in '' -v; do
        before=$(date +%s%N)
        # shellcheck disable=SC2086 # nothing, or a word
        exits 69 "$scheme: -w $options" "$DBLOCK" run $options -w 0.5 x true
        check "$scheme: -w $options outlives an outage" \
            [ $((($(date +%s%N) - before) / 1000000)) -ge 500 ]
    done
done

# PITFALL(D14): the database is gone when COMMAND ends. Its own status counts, and what became of the
# lock is said beside that.
export DBLOCK_URL=sqlite:$folder/going/lock.db
mkdir "$folder/going"
"$DBLOCK" init > /dev/null 2>&1
# sleeps because the path is looked at every 50 ms at most: what is quicker is released in the old file
exits 3 'the database is gone at the release' "$DBLOCK" run -n x -c 'rm -r "$HOME/going"; sleep 0.1; exit 3'
like "$err" 'free again within its ttl' 'what became of the lock is said'

# The line of a crontab: nothing but HOME, LOGNAME, SHELL and PATH from outside.
use_sqlite
mkdir -p "$folder/.config/dblock"
echo "$DBLOCK_URL" > "$folder/.config/dblock/url"
exits 0 'a line of a crontab' env -i HOME="$folder" LOGNAME=me SHELL=/bin/sh \
    PATH="$(dirname "$DBLOCK"):/usr/bin:/bin" \
    /bin/sh -c 'dblock run -n --at-least 60 report -- touch "$HOME/report-ran"'
check 'runs' [ -e "$folder/report-ran" ]
exits 75 'and is the only one for a minute' "$DBLOCK" run -n report -- true
is "$err" '' 'about which the others say nothing'
finish
