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
like "$err" "lock.db" 'says which database'
exits 0 'init again' "$DBLOCK" init
exits 0 'init --json' "$DBLOCK" init --json
valid_json 'init'
exits 0 'run' "$DBLOCK" run -n x true
for i in 1 2 3 4 5 6; do
    start "$DBLOCK" init -d "sqlite:$folder/many$((i % 2)).db"
done
for pid in "${started[@]}"; do
    ended "$pid" 0 'many at once'
done
exits 78 'sqlite has no roles' "$DBLOCK" schema -g app sqlite
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
