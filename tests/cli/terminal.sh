#!/bin/bash
# SPDX-License-Identifier: MIT
# terminal.sh - job control: an interactive shell in a terminal of its own, fed line
# by line. PITFALL(H8). Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

if ! command -v script > /dev/null; then
    echo 'SKIP: script(1) is not here'
    exit 77
fi
use_sqlite
mkfifo "$folder/keys"
cat > "$folder/rc" <<'END'
PS1='ready> '
bind 'set enable-bracketed-paste off' 2> /dev/null
END
start bash -c 'TERM=dumb exec script -qfc "bash --noprofile --rcfile $HOME/rc -i" /dev/null < "$HOME/keys"'
terminal=$!
exec 9> "$folder/keys"

# What the terminal shows, without carriage returns.
screen()
{
    tr -d '\r' < "$folder/started.out"
}

shows()
{
    screen | tail -n +"$seen" | grep -Eq -- "$1"
}

# keys TEXT PATTERN NAME: types TEXT, and waits until PATTERN is shown after it
seen=1
keys()
{
    printf '%b' "$1" >&9
    until_true "$3" shows "$2" && pass "$3"
    seen=$(($(screen | wc -l) + 1))
}

run=$DBLOCK' run x --'
until_true 'the shell is there' shows 'ready>'
keys "$run cat\n" 'run x -- cat' 'COMMAND is started'
until_true 'it runs' is_held x
keys 'hello\n' '^hello' 'COMMAND reads from the terminal'
keys '\032' 'Stopped' 'control-Z stops it, and the shell takes over'
keys 'echo is-$((1 + 1))\n' 'is-2' 'which works'
keys 'fg\n' 'run x -- cat' 'fg'
keys 'again\n' '^again' 'continues it'
keys '\003' 'ready>' 'control-C ends it'
keys 'echo status-$?\n' 'status-130' 'with its status'
check 'the lock is free' is_free x

keys "$run cat | tr a-z A-Z\n" 'tr a-z' 'in a pipeline'
keys 'piped\n' 'PIPED' 'COMMAND reads, and the pipeline works'
keys '\004' 'ready>' 'control-D is its end of input'

# As soon as the lock is held: COMMAND may not have been started yet.
for each in 1 2 3 4 5 6; do
    keys "$run cat\n" 'run x -- cat' "round $each"
    until_true 'it runs' is_held x
    keys '\032' 'Stopped' "is stopped at once ($each)"
    keys 'fg\n' 'run x -- cat' "and continued ($each)"
    keys '\004' 'ready>' "until its input ends ($each)"
done

keys "$run cat\n" 'run x -- cat' 'once more'
until_true 'it runs' is_held x
keys '\032' 'Stopped' 'is stopped'
keys 'bg\n' 'ready>' 'goes into the background'
keys 'fg\n' 'run x -- cat' 'comes back'
keys 'back\n' '^back' 'and reads'
keys '\004' 'ready>' 'until its input ends'
keys 'echo status-$?\n' 'status-0' 'with its status'

keys "$DBLOCK run --foreground x -- cat\n" 'foreground x' '--foreground'
until_true 'it runs' is_held x
keys 'front\n' '^front' 'reads from the terminal'
keys '\003' 'ready>' 'control-C ends it once'
keys 'echo status-$?\n' 'status-130' 'with its status'

# On a terminal one is told who is in the way.
"$DBLOCK" acquire -t 60 x > "$folder/grant"
keys "$DBLOCK run -n x -- true\n" '"x" is held by .*; not run' 'busy is said on a terminal'
keys "$DBLOCK run x -- echo got-\$((1 + 1))\n" 'is held by .*; waiting' 'and that one waits'
"$DBLOCK" release "$(cat "$folder/grant")"
until_true 'the wait is over' shows '^got-2' && pass 'until it is free'
"$DBLOCK" acquire -t 60 x > "$folder/grant"
keys "$DBLOCK break x\n" 'End the lock\?' 'break asks'
keys 'n\n' 'ready>' 'and takes no'
check 'the lock is held' is_held x
keys "$DBLOCK break x\n" 'End the lock\?' 'break asks again'
keys 'y\n' '"x" is ended' 'and takes yes'

printf 'exit\n' >&9
exec 9>&-
until_true 'the terminal is closed' gone "$terminal"
[ "$n_failed" = 0 ] || screen
finish
