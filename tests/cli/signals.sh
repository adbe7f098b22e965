#!/bin/bash
# SPDX-License-Identifier: MIT
# signals.sh - signals to dblock reach COMMAND's process group; whatever ends dblock
# ends COMMAND and what came from it. PITFALL(H1), PITFALL(H2), PITFALL(H9). Runs beside others.
. "$(dirname "$0")/lib/cli.sh"
use_sqlite

# Says its name and its number, and waits for a signal in a shell's way.
cat > "$folder/child" <<'END'
#!/bin/sh
for signal in TERM INT HUP QUIT USR1 USR2; do
    trap "echo $signal >> \"\$HOME/got\"; exit 7" "$signal"
done
sh -c 'trap "" TERM INT HUP QUIT USR1 USR2; echo $$ > "$HOME/grandchild"; exec sleep 300' &
echo $$ > "$HOME/ready"
wait
wait
END
chmod +x "$folder/child"

for signal in TERM INT HUP QUIT USR1 USR2; do
    rm -f "$folder/got" "$folder/ready" "$folder/grandchild"
    start "$DBLOCK" run x -- "$folder/child"
    pid=$!
    until_true 'COMMAND runs' exists "$folder/ready" || continue
    until_true 'its child runs' exists "$folder/grandchild" || continue
    kill -s $signal "$pid"
    ended "$pid" 7 "$signal: COMMAND's own exit status"
    is "$(cat "$folder/got")" $signal "$signal reaches COMMAND, once"
    check "$signal: the lock is free" is_free x
    kill -KILL "$(cat "$folder/grandchild")"
done

# The whole group gets it, not only a shell in between.
rm -f "$folder/ready"
start "$DBLOCK" run x -c 'sleep 300 & echo $! > "$HOME/ready"; wait'
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
kill -TERM "$pid"
ended "$pid" 143 'TERM ends a shell'
until_true 'and its child' gone "$(cat "$folder/ready")" && pass 'and its child'

# --foreground: one group, and still passed on.
rm -f "$folder/ready"
start "$DBLOCK" run --foreground x -c 'ps -o pgid= -p $$ > "$HOME/ready"; exec sleep 300'
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
is "$(tr -d ' ' < "$folder/ready")" "$pid" "--foreground: dblock's process group"
kill -TERM "$pid"
ended "$pid" 143 '--foreground: TERM is passed on'

has_guardian()
{
    local child
    for child in $(cat "/proc/$1/task/$1/children"); do
        ! grep -q guardian "/proc/$child/comm" || return 0
    done
    return 1
}

# kill -9 of dblock.
for strategy in lease insert row advisory; do
    rm -f "$folder/ready" "$folder/grandchild"
    start "$DBLOCK" run -S $strategy -t 2 x -- true
    wait "$!"
    options=
    case $strategy in lease | insert) options='-t 1' ;; esac
    # shellcheck disable=SC2086 # two words are meant
    start "$DBLOCK" run -S $strategy $options x -- "$folder/child"
    pid=$!
    until_true 'COMMAND runs' exists "$folder/ready" || continue
    until_true 'its child runs' exists "$folder/grandchild" || continue
    until_true 'the guardian runs' has_guardian "$pid"
    kill -KILL "$pid"
    until_true "$strategy: COMMAND is gone" gone "$(cat "$folder/ready")" &&
        pass "$strategy: kill -9 ends COMMAND"
    until_true "$strategy: its child is gone" gone "$(cat "$folder/grandchild")" &&
        pass "$strategy: and its child"
    exits 0 "$strategy: the lock is free again" "$DBLOCK" run -w 8 -S $strategy x true
done

# kill -9 of the guardian: another takes its place, so that the promise stands.
guardian_of()
{
    local child
    for child in $(cat "/proc/$1/task/$1/children"); do
        ! grep -q guardian "/proc/$child/comm" || echo "$child"
    done
}
has_another()
{
    local now
    now=$(guardian_of "$pid")
    [ -n "$now" ] && [ "$now" != "$first" ]
}
rm -f "$folder/ready" "$folder/grandchild"
start "$DBLOCK" run x -- "$folder/child"
pid=$!
until_true 'its child runs' exists "$folder/grandchild"
until_true 'the guardian runs' has_guardian "$pid"
first=$(guardian_of "$pid")
kill -KILL "$first"
until_true 'another guardian runs' has_another && pass 'a guardian that is killed is replaced'
like "$(cat "$folder/started.err")" 'dblock-guardian, .* is missing .*; starting another' 'which is said'
kill -KILL "$pid"
until_true 'its child is gone' gone "$(cat "$folder/grandchild")" &&
    pass 'and kill -9 of dblock ends the whole group'
exits 0 "the lock is another's to take" "$DBLOCK" break -q -y x

# A stopped COMMAND is ended as well.
rm -f "$folder/ready"
start "$DBLOCK" run x -c 'echo $$ > "$HOME/ready"; exec sleep 300'
pid=$!
until_true 'COMMAND runs' exists "$folder/ready"
kill -STOP "$(cat "$folder/ready")"
kill -TERM "$pid"
ended "$pid" 143 'TERM ends a COMMAND that is stopped'

# What COMMAND leaves behind on purpose lives on.
exits 0 'a background process of COMMAND' "$DBLOCK" run x -c \
    'setsid sleep 300 > /dev/null 2>&1 < /dev/null & echo $!'
left=$out
check 'may outlive a run that ended well' alive "$left"
kill -KILL "$left"
finish
