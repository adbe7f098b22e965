#!/bin/bash
# SPDX-License-Identifier: MIT
# acquire.sh - a lock across the steps of a script: acquire, extend, release, and
# the keeper of -P. Runs beside others. Starts first. Time limit: 300 s.
. "$(dirname "$0")/lib/cli.sh"

steps()
{
    local strategy
    for strategy in lease insert; do
        on="$database $strategy"
        exits 0 "$on: acquire" "$DBLOCK" acquire -S $strategy -t 1m -l step "$name"
        grant=$out
        like "$grant" '^[!-~]+$' "$on: the grant is one word"
        check "$on: held after it" is_held -S $strategy "$name"
        exits 75 "$on: taken" "$DBLOCK" acquire -n -S $strategy -t 1m "$name"
        is "$out" '' "$on: nothing is printed"
        exits 75 "$on: for run as well" "$DBLOCK" run -n -S $strategy "$name" true
        exits 71 "$on: nobody to print to" bash -c '"$DBLOCK" acquire -t 1m -S "$1" "$2" >&-' \
            - $strategy "$name-mute"
        check "$on: given back" is_free -S $strategy "$name-mute"
        exits 0 "$on: extend" "$DBLOCK" extend -t 2m "$grant"
        exits 0 "$on: extend as JSON" "$DBLOCK" extend --json -t 2m "$grant"
        valid_json "$on: extend"
        check "$on: to two minutes" [ "$(json '.lock.remaining_ms')" -gt 100000 ]
        DBLOCK_GRANT=$grant exits 0 "$on: DBLOCK_GRANT" "$DBLOCK" extend -t 1m
        exits 0 "$on: release" "$DBLOCK" release "$grant"
        check "$on: free after it" is_free -S $strategy "$name"
        "$DBLOCK" release "$grant" > /dev/null 2>&1
        status=$?
        check "$on: a second release is 1 or 76 ($status)" [ $status = 1 -o $status = 76 ]
        exits 76 "$on: extend of what is over" "$DBLOCK" extend -t 1m "$grant"

        exits 0 "$on: acquire as JSON" "$DBLOCK" acquire --json -S $strategy -t 1m "$name"
        valid_json "$on: acquire"
        is "$(json '[.name, .lock.name, .lock.token > 0] | @json')" "[\"$name\",\"$name\",true]" \
            "$on: has the name"
        stale=$(json .grant)
        is "$(json '[.outcome, .lock.strategy, .holder] | @json')" "[\"held\",\"$strategy\",null]" \
            "$on: has the lock"
        exits 75 "$on: busy as JSON" "$DBLOCK" acquire --json -n -S $strategy -t 1m "$name"
        valid_json "$on: busy acquire"
        is "$(json '[.outcome, .grant, .holder.strategy] | @json')" \
            "[\"busy\",null,\"$strategy\"]" "$on: has the holder"
        exits 0 "$on: break" "$DBLOCK" break -y -S $strategy "$name"
        exits 0 "$on: somebody else" "$DBLOCK" acquire -S $strategy -t 1m "$name"
        grant=$out
        exits 76 "$on: release of a stale grant" "$DBLOCK" release "$stale"
        like "$err" "\"$name\": this grant was over" "$on: the lock is named"
        exits 76 "$on: release of it as JSON" "$DBLOCK" release --json "$stale"
        valid_json "$on: release"
        is "$(json '[.name, .outcome, .lock] | @json')" "[\"$name\",\"lost\",null]" "$on: has the name"
        check "$on: does not end a later one" is_held -S $strategy "$name"
        exits 0 "$on: which its own grant does" "$DBLOCK" release "$grant"

        exits 78 "$on: extend of a lock that is renewed" \
            "$DBLOCK" run -S $strategy "$name" -- "$DBLOCK" extend --json -t 10
        is "$out" '' "$on: a failure prints no JSON"
        like "$err" "\"$name\" has no end that -t could move" "$on: speaks of the option"
        unlike "$err" 'dblock_|pass 0' "$on: and of no function"

        # Nobody renews it.
        exits 0 "$on: for a second" "$DBLOCK" acquire -S $strategy -t 1 "$name"
        grant=$out
        exits 0 "$on: it ends by itself" "$DBLOCK" run -w 5 -S $strategy "$name" true
        exits 76 "$on: too late" "$DBLOCK" release "$grant"

        # -P: as long as a process lives.
        start sleep 300
        parent=$!
        exits 0 "$on: acquire -P" "$DBLOCK" acquire -P "$parent" -S $strategy -t 1 "$name"
        grant=$out
        # sleeps because the ttl is to be over
        sleep 1.5
        check "$on: -P renews" is_held -S $strategy "$name"
        exits 75 "$on: -P: taken" "$DBLOCK" run -n -S $strategy "$name" true
        "$DBLOCK" extend -t 5 "$grant" > /dev/null 2>&1
        status=$?
        check "$on: -P: not for extend ($status)" [ $status = 78 ]
        kill -KILL "$parent"
        until_true "$on: -P" is_free -S $strategy "$name" && pass "$on: the end of PID frees it"
        start sleep 300
        parent=$!
        exits 0 "$on: acquire -P once more" "$DBLOCK" acquire -P "$parent" -S $strategy -t 2 "$name"
        exits 0 "$on: -P: release by the grant" "$DBLOCK" release "$out"
        check "$on: -P: free" is_free -S $strategy "$name"
        kill -KILL "$parent"
    done
}

for_each_database steps

use_sqlite
exits 64 'no grant at all' "$DBLOCK" release 'this is none'
exits 64 '-P of no process' "$DBLOCK" acquire -P 2147483647 -t 10 x
check 'takes nothing' is_free x

# A grant that nobody has read is given back.
"$DBLOCK" acquire -t 60 x > /dev/full 2> "$folder/err"
is $? 71 'a full disk'
check 'the lock is given back' is_free x
start sleep 300
"$DBLOCK" acquire -P $! -t 60 x > /dev/full 2> "$folder/err"
is $? 71 'a full disk with -P'
until_true 'given back' is_free x && pass 'the lock is given back'

# A signal while it waits, with and without a keeper.
exits 0 'somebody holds it' "$DBLOCK" acquire -t 60 x
grant=$out
for options in '' "-P $$"; do
    # shellcheck disable=SC2086 # two words are meant
    start "$DBLOCK" acquire -t 60 $options x
    pid=$!
    until_true "acquire $options waits" catches TERM "$pid"
    kill -TERM "$pid"
    ended "$pid" 143 "acquire $options: TERM ends the wait"
done
exits 0 'release' "$DBLOCK" release "$grant"
check 'nothing is left behind' is_free x

# Words of the library's programmers are not those of the command's users.
exits 64 'a grant that is none' "$DBLOCK" extend -t 10 grant
like "$err" 'GRANT is not what "dblock acquire" printed' 'is said so'
exits 64 'a label that is no text' "$DBLOCK" acquire -t 10 -l $'\xff' x
like "$err" '^dblock: -l: ' 'is the option'
exits 64 'a name that is none' "$DBLOCK" acquire -t 10 ''
like "$err" '^dblock: NAME: ' 'is the word'
exits 64 'a prefix that is too long' "$DBLOCK" list "$(printf '%0300d' 1)"
like "$err" '^dblock: PREFIX: ' 'is the word, too'

# JSON is of what the database has answered.
for command in 'acquire -n -t 10 x' 'extend -t 10 dblock1:lease:00000000000000000000000000000000:1:x' \
    'release dblock1:lease:00000000000000000000000000000000:1:x' 'show x' list 'break -y x' init; do
    # shellcheck disable=SC2086 # several words are meant
    exits 78 "a failure of ${command%% *}" "$DBLOCK" $command --json -d "sqlite:$folder/none/x.db"
    is "$out" '' 'prints no JSON'
    is "$(wc -l <<< "$err")" 1 'but its message'
done

# The example of the help text.
cat > "$folder/script" <<'END'
grant=$(dblock acquire -t 10m -w 60 deploy) || exit
dblock extend -t 10m "$grant" || exit
dblock release "$grant"
END
exits 0 'the example of the help' env PATH="$(dirname "$DBLOCK"):$PATH" sh "$folder/script"
finish
