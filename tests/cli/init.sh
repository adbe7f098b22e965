#!/bin/bash
# SPDX-License-Identifier: MIT
# init.sh - the tables and their SQL. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

export DBLOCK_URL=sqlite:$folder/lock.db
exits 0 'init --dry-run' "$DBLOCK" init --dry-run
like "$out" 'CREATE TABLE' 'prints the SQL'
check 'and makes nothing' [ ! -e "$folder/lock.db" ]
dry=$out
exits 0 'schema' "$DBLOCK" schema
is "$out" "$dry" 'is the same'
exits 0 'schema DATABASE' env -u DBLOCK_URL "$DBLOCK" schema sqlite
is "$out" "$dry" 'needs no URL'
exits 0 'init' "$DBLOCK" init
like "$err" 'the tables are in .*lock.db now' 'says what it did, and where'
exits 0 'init again' "$DBLOCK" init
like "$err" 'tables in .*lock.db were up to date' 'says that there was nothing to do'
unlike "$err" 'now' 'and not that it made any'
exits 0 'init --json' "$DBLOCK" init --json
valid_json 'init'
is "$(json .outcome)" up_to_date 'has the outcome'
exits 0 'init --json of a new file' "$DBLOCK" init --json -d "sqlite:$folder/new.db"
valid_json 'init of a new file'
is "$(json .outcome)" created 'has the other outcome'

# at URL COMMAND [WORD]...
at()
{
    "$DBLOCK" "$2" -d "$1" "${@:3}"
}

# What fails is not announced, and is the same failure in every command.
mkdir "$folder/folder"
echo 'a text' > "$folder/text"
ln -s loop "$folder/loop"
for path in none/x.db folder text/x.db loop "$(printf '%0300d' 1)"; do
    for command in init 'init --json' 'show x' list 'run -n x true' 'acquire -n -t 10 x' 'break -y x' \
        'release dblock1:lease:00000000000000000000000000000000:1:x'; do
        # shellcheck disable=SC2086 # several words are meant
        exits 78 "$command of ${path:0:20}" at "sqlite:$folder/$path" $command
        is "$out" '' 'prints nothing'
        is "$(wc -l <<< "$err")" 1 'and one message'
    done
done
exits 78 'init of what is no database' "$DBLOCK" init -d "sqlite:$folder/text"
unlike "$err" 'are in|up to date' 'says no more than that'
# A write that is cut off in the middle may have been done; of tables that does not matter.
exits 69 'init that is cut off' bash -c "trap '' XFSZ; ulimit -f 1; exec '$DBLOCK' init -d 'sqlite:$folder/cut.db'"
like "$err" 'safe to run this again' 'says what to do'
unlike "$err" 'are in|up to date' 'and not what it did not'
exits 0 'and again' "$DBLOCK" init -d "sqlite:$folder/cut.db"
ln "$folder/new.db" "$folder/other-name.db"
for command in init 'show x' list 'break -y x'; do
    # shellcheck disable=SC2086 # several words are meant
    exits 78 "$command of a file with two names" at "sqlite:$folder/new.db" $command
done
exits 0 'run' "$DBLOCK" run -n x true
for i in 1 2 3 4 5 6; do
    start "$DBLOCK" init -d "sqlite:$folder/many$((i % 2)).db"
done
for pid in "${started[@]}"; do
    ended "$pid" 0 'many at once'
done
exits 64 'sqlite has no roles' "$DBLOCK" schema -g app sqlite
like "$err" 'sqlite has no roles for -g' 'is said'
if command -v sqlite3 > /dev/null; then
    "$DBLOCK" schema sqlite | sqlite3 -bail "$folder/by-hand.db" && pass 'the SQL runs by hand'
    exits 0 'and is enough' "$DBLOCK" run -n -d "sqlite:$folder/by-hand.db" x true
fi
for scheme in postgresql mysql; do
    if ! has_driver $scheme; then
        echo "# SKIP schema $scheme: its driver is not built"
        continue
    fi
    exits 0 "schema $scheme" "$DBLOCK" schema $scheme
    plain=$out
    exits 0 "schema -g $scheme" "$DBLOCK" schema -g "o'app\"" $scheme
    rights=$(sed -n '/^GRANT/,$p' <<< "$out")
    like "$rights" 'TO .*o.?.?app' 'has rights for the role'
    for object in $(sed -n 's/^CREATE [A-Z]* IF NOT EXISTS \(dblock_[a-z_]*\).*/\1/p' <<< "$plain"); do
        like "$rights" "[ .]$object(,| TO|\$)" "has rights on $object"
    done
done
finish
