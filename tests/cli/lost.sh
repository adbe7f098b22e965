#!/bin/bash
# SPDX-License-Identifier: MIT
# lost.sh - the lock is lost while COMMAND runs: it is told to end, then made to,
# and dblock exits with 76. PITFALL(H3). Runs beside others. Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

# Says that it runs, and, when it is told to end, that it was told.
cat > "$folder/listens" <<'END'
#!/bin/sh
trap 'echo told > "$HOME/told"; exit 0' "${1:-TERM}"
sh -c 'exec sleep 300' &
echo $$ > "$HOME/ready"
wait
END
# Cannot be told.
cat > "$folder/ignores" <<'END'
#!/bin/sh
trap '' TERM
echo $$ > "$HOME/$1"
exec sleep 300
END
chmod +x "$folder/listens" "$folder/ignores"

broken()
{
    local strategy pid
    for strategy in lease insert row advisory; do
        on="$database $strategy"
        options=
        case $strategy in lease | insert) options='-t 3' ;; esac

        rm -f "$folder/ready" "$folder/told"
        # shellcheck disable=SC2086 # two words are meant
        start "$DBLOCK" run -S $strategy $options --report "$folder/report" "$name" -- \
            "$folder/listens"
        pid=$!
        until_true "$on: COMMAND runs" exists "$folder/ready" || continue
        "$DBLOCK" break -y -S $strategy "$name" > "$folder/out" 2> "$folder/err"
        status=$?
        if [ $status = 78 ]; then
            pass "$on: cannot be broken from outside: $(cat "$folder/err")"
            kill -TERM "$pid"
            wait "$pid" 2> /dev/null
            continue
        fi
        is $status 0 "$on: break"
        ended "$pid" 76 "$on: exit 76, also if COMMAND ends with 0"
        is "$(cat "$folder/told" 2> /dev/null)" told "$on: COMMAND got TERM"
        like "$(cat "$folder/started.err")" "\"$name\" is lost: " "$on: is said"
        out=$(cat "$folder/report")
        valid_json "$on: report"
        is "$(json '[.outcome, .exit, .exit_from] | @json')" '["lost",76,"dblock"]' "$on: is reported"
        check "$on: free" is_free "$name"
    done
}

for_each_database broken

use_sqlite
# One that does not listen, and what came from it: also in a session of its own.
rm -f "$folder/ready"
start "$DBLOCK" run -t 3 -k 0.5 x -c 'trap "" TERM
    setsid "$HOME/ignores" session & "$HOME/ignores" grandchild & exec "$HOME/ignores" ready'
pid=$!
for file in ready session grandchild; do
    until_true "$file" exists "$folder/$file"
done
exits 0 'break' "$DBLOCK" break -y x
ended "$pid" 76 'one that traps TERM is ended after the grace'
for file in ready session grandchild; do
    check "KILL: $file is gone" gone "$(cat "$folder/$file")"
done
like "$(cat "$folder/started.err")" 'KILL' 'KILL is said'

# -k 0: no grace.
rm -f "$folder/ready"
start "$DBLOCK" run -t 3 -k 0 x -- "$folder/ignores" ready
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
exits 0 'break' "$DBLOCK" break -y x
ended "$pid" 76 '-k 0 kills at once'

# --signal
rm -f "$folder/ready" "$folder/told"
start "$DBLOCK" run -t 3 --signal USR1 x -- "$folder/listens" USR1
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
exits 0 'break' "$DBLOCK" break -y x
ended "$pid" 76 '--signal: exit 76'
is "$(cat "$folder/told" 2> /dev/null)" told '--signal: COMMAND got USR1'

# --on-lost=warn
rm -f "$folder/ready" "$folder/go"
mkfifo "$folder/go"
start "$DBLOCK" run -t 3 --on-lost warn x -c 'echo $$ > "$HOME/ready"; read -r word < "$HOME/go"
    echo "$word"'
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
exits 0 'break' "$DBLOCK" break -y x
said()
{
    grep -q 'is lost: .*runs on' "$folder/started.err"
}
until_true 'the loss is said' said
check 'warn: COMMAND runs on' alive "$(cat "$folder/ready")"
echo finished > "$folder/go"
ended "$pid" 76 'warn: exit 76 in the end'
is "$(cat "$folder/started.out")" finished 'warn: COMMAND has come to its end'

# PITFALL(E11): a stopped dblock cannot renew; when it goes on, it finds out.
rm -f "$folder/ready"
start "$DBLOCK" run -t 1 x -c 'echo $$ > "$HOME/ready"; exec sleep 300'
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
kill -STOP "$pid"
exits 0 'another takes over after the ttl' "$DBLOCK" run -w 8 x true
kill -CONT "$pid"
ended "$pid" 76 'one that was stopped too long ends COMMAND'

# The tables are gone: nothing can be renewed. TERM comes before the deadline.
if command -v sqlite3 > /dev/null; then
    rm -f "$folder/ready" "$folder/told"
    start "$DBLOCK" run -t 2 x -- "$folder/listens"
    pid=$!
    until_true 'COMMAND runs' exists "$folder/ready"
    sqlite3 "$folder/lock.db" 'DROP TABLE dblock_session' 2> /dev/null
    ended "$pid" 76 'heartbeats that fail: exit 76'
    is "$(cat "$folder/told" 2> /dev/null)" told 'heartbeats that fail: COMMAND got TERM'
fi
finish
