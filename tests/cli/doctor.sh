#!/bin/bash
# SPDX-License-Identifier: MIT
# doctor.sh - dblock doctor finds on real servers what was made wrong there, each thing in a
# database of its own, and says what mends it; and is content afterwards. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

# found SEVERITY ID NAME: the last answer has such a line
found()
{
    like "$out" "^$1 +$2 " "$3"
}

# --------------------------------------------------------------------------- SQLite

export DBLOCK_URL=sqlite:$folder/lock.db
exits 2 'no file' "$DBLOCK" doctor
like "$err" 'dblock init' 'says what to do'
is "$out" '' 'and prints nothing else'
exits 0 'local without a file is fine' "$DBLOCK" doctor -d local
"$DBLOCK" init -q
exits 0 'a good file' "$DBLOCK" doctor
found good journal 'tells also what is good'
exits 0 'quiet' "$DBLOCK" doctor -q
is "$out" '' 'has nothing to say then'
exits 0 'json' "$DBLOCK" doctor --json
valid_json 'doctor'
is "$(json .verdict)" good 'has a verdict'
is "$(json .strategies.lease)" good 'also for each strategy'
is "$(json '[.findings[] | select(.remedy != null)] | length')" 0 'and nothing to mend'
exits 0 'one strategy' "$DBLOCK" doctor --json -S row
is "$(json '.strategies | keys | join(" ")')" row 'is judged alone'
exits 64 'a name' "$DBLOCK" doctor x
chmod o+w "$folder/lock.db"
exits 1 'a file that everybody may write' "$DBLOCK" doctor
found warning rights 'is told'
like "$out" "chmod o-w '.*lock.db'" 'with what mends it'
chmod o-w "$folder/lock.db"
if command -v sqlite3 > /dev/null; then
    sqlite3 "$folder/lock.db" 'PRAGMA journal_mode = DELETE; CREATE INDEX more ON dblock_lease (label)' > /dev/null
    exits 1 'no write-ahead log, and an index' "$DBLOCK" doctor -q
    found warning journal 'tells of the one'
    found warning index 'and of the other'
    is "$(head -n 1 <<< "$out" | cut -c 1-7)" warning 'and of nothing good'
    exits 0 'for row it does not matter' "$DBLOCK" doctor -q -S row
    is "$out" '' 'and is not told'
    sqlite3 "$folder/lock.db" 'DROP TABLE dblock_lease'
    exits 2 'a table is missing' "$DBLOCK" doctor
    found unusable tables 'is told'
    is "$(head -n 1 <<< "$out" | cut -c 1-8)" unusable 'and comes first'
fi
if command -v sqlite3 > /dev/null; then
    sqlite3 "$folder/bare.db" 'PRAGMA journal_mode = WAL; CREATE TABLE theirs (a)' > /dev/null
    exits 0 'a file without tables: a row lock' "$DBLOCK" run -S row -d "sqlite:$folder/bare.db" x true
    for words in '-S advisory' '-S row -S advisory'; do
        # shellcheck disable=SC2086 # several words are meant
        exits 1 "doctor $words" "$DBLOCK" doctor -q $words -d "sqlite:$folder/bare.db"
        found warning tables 'warns'
        like "$out" 'locks work without tokens, and list, show and break do not' 'says what is missing'
    done
    exits 2 'doctor of all' "$DBLOCK" doctor --json -d "sqlite:$folder/bare.db"
    is "$(json '.strategies | [.lease, .row, .advisory] | join(" ")')" 'unusable warning warning' \
        'tells them apart'
    exits 2 'doctor of lease and row' "$DBLOCK" doctor -S lease -S row -d "sqlite:$folder/bare.db"
fi
exits 2 'a server that is not there' "$DBLOCK" doctor -d postgresql://someone:never-print-me@127.0.0.1:1/x
unlike "$err$out" never-print-me 'keeps the password to itself'

# ----------------------------------------------------------------------- PostgreSQL

# Each case: what is made wrong, whether it warns or makes unusable, how it is found, what mends it.
pgsql()
{
    psql -qAtX -v ON_ERROR_STOP=1 -d "$admin" -c "$1" > /dev/null || fail "psql: $1"
}

pgsql_case()
{
    local exit=$1 severity=$2 id=$3 wrong=$4 right=$5
    pgsql "$wrong"
    exits "$exit" "$id: $wrong" "$DBLOCK" doctor
    found "$severity" "$id" "$id is found"
    pgsql "$right"
    exits 0 "$id: $right" "$DBLOCK" doctor -q
    is "$out" '' "$id is mended"
}

if [ -n "${DBLOCK_TEST_PGSQL_ADMIN:-}" ] && has_driver postgresql; then
    own=doctor_$$_$RANDOM
    psql -qAtX -d "$DBLOCK_TEST_PGSQL_ADMIN" -c "CREATE ROLE $own LOGIN PASSWORD 'x'" \
        -c "CREATE DATABASE $own OWNER $own"
    admin=${DBLOCK_TEST_PGSQL_ADMIN/dblock_test\?/$own?}
    DBLOCK_URL=${DBLOCK_TEST_PGSQL/dblock_test:never-print-me@/$own:x@}
    DBLOCK_URL=${DBLOCK_URL/\/dblock_test/\/$own}
    exits 2 'PostgreSQL without tables' "$DBLOCK" doctor
    found unusable tables 'says so'
    like "$out" 'mend: .*dblock init' 'and what to do'
    exits 1 'which advisory does not need' "$DBLOCK" doctor -q -S advisory
    found warning tables 'warns'
    exits 2 'and row does' "$DBLOCK" doctor -S advisory -S row
    "$DBLOCK" init -q
    exits 0 'PostgreSQL with tables' "$DBLOCK" doctor
    found good version 'is good'
    exits 0 'json' "$DBLOCK" doctor --json
    valid_json 'doctor on PostgreSQL'
    pgsql_case 2 unusable writable "ALTER ROLE $own SET default_transaction_read_only = on" \
        "ALTER ROLE $own RESET default_transaction_read_only"
    pgsql_case 1 warning isolation "ALTER ROLE $own SET default_transaction_isolation = 'serializable'" \
        "ALTER ROLE $own RESET default_transaction_isolation"
    pgsql_case 1 warning log "ALTER ROLE $own SET log_statement = 'all'" \
        "ALTER ROLE $own RESET log_statement"
    pgsql_case 1 warning index 'CREATE INDEX more ON dblock_lease (label)' 'DROP INDEX more'
    pgsql_case 1 warning unlogged 'ALTER TABLE dblock_insert SET UNLOGGED' \
        'ALTER TABLE dblock_insert SET LOGGED'
    pgsql_case 2 unusable row-security 'ALTER TABLE dblock_lease ENABLE ROW LEVEL SECURITY' \
        'ALTER TABLE dblock_lease DISABLE ROW LEVEL SECURITY'
    pgsql_case 1 warning trigger 'CREATE TRIGGER more BEFORE UPDATE ON dblock_lease FOR EACH ROW
        EXECUTE FUNCTION suppress_redundant_updates_trigger()' 'DROP TRIGGER more ON dblock_lease'
    pgsql_case 1 warning vacuum 'ALTER TABLE dblock_session SET (autovacuum_enabled = false)' \
        'ALTER TABLE dblock_session RESET (autovacuum_enabled)'
    pgsql_case 1 warning waiting "REVOKE EXECUTE ON ALL PROCEDURES IN SCHEMA public FROM public, $own" \
        "GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA public TO $own"
    pgsql_case 1 warning waiting "REVOKE EXECUTE ON FUNCTION dblock_wait FROM public, $own" \
        "GRANT EXECUTE ON FUNCTION dblock_wait TO $own"
    pgsql_case 2 unusable tables "REVOKE INSERT ON dblock_lease FROM $own" \
        "GRANT INSERT ON dblock_lease TO $own"
    pgsql_case 2 unusable columns 'ALTER TABLE dblock_row ALTER COLUMN name TYPE varchar USING encode(name, $$hex$$)' \
        'ALTER TABLE dblock_row ALTER COLUMN name TYPE bytea USING decode(name, $$hex$$)'
    pgsql 'ALTER ROLE '"$own"' SET TimeZone = "Asia/Kathmandu"'
    exits 0 'another time zone' "$DBLOCK" doctor
    found good time-zone 'does not matter'
    psql -qAtX -d "$DBLOCK_TEST_PGSQL_ADMIN" -c "DROP DATABASE $own WITH (FORCE)" -c "DROP ROLE $own"
    if [ -n "${DBLOCK_TEST_PGBOUNCER:-}" ]; then
        "$DBLOCK" init -q -d "$DBLOCK_TEST_PGSQL"
        exits 1 'behind PgBouncer' "$DBLOCK" doctor -d "$DBLOCK_TEST_PGBOUNCER"
        found warning pooler 'says what does not work'
        exits 0 'where lease is meant' "$DBLOCK" doctor -S lease -d "$DBLOCK_TEST_PGBOUNCER"
    fi
fi

# -------------------------------------------------------------------- MySQL, MariaDB

mysql_as_admin()
{
    local at=${DBLOCK_TEST_MYSQL_ADMIN#mysql://}
    local user=${at%%:*} rest=${at#*:}
    local word=${rest%%@*} place=${rest#*@}
    place=${place%%/*}
    MYSQL_PWD=$word mariadb --no-defaults -u "$user" -h "${place%:*}" -P "${place#*:}" -e "$1" ||
        fail "mariadb: $1"
}

mysql_case()
{
    local exit=$1 severity=$2 id=$3 wrong=$4 right=$5
    mysql_as_admin "USE $own; $wrong"
    exits "$exit" "$id: $wrong" "$DBLOCK" doctor
    found "$severity" "$id" "$id is found"
    mysql_as_admin "USE $own; $right"
    exits 0 "$id: $right" "$DBLOCK" doctor -q
    is "$out" '' "$id is mended"
}

if [ -n "${DBLOCK_TEST_MYSQL_ADMIN:-}" ] && has_driver mysql && command -v mariadb > /dev/null; then
    own=doctor_$$_$RANDOM
    mysql_as_admin "CREATE DATABASE $own; CREATE USER $own@'%' IDENTIFIED BY 'x'; GRANT ALL ON $own.* TO $own@'%'"
    DBLOCK_URL=${DBLOCK_TEST_MYSQL/dblock_test:never-print-me@/$own:x@}
    DBLOCK_URL=${DBLOCK_URL/\/dblock_test/\/$own}
    exits 2 'MariaDB without tables' "$DBLOCK" doctor
    found unusable tables 'says so'
    exits 1 'which advisory does not need' "$DBLOCK" doctor -q -S advisory
    exits 2 'and row does' "$DBLOCK" doctor -S advisory -S row
    "$DBLOCK" init -q
    exits 0 'MariaDB with tables' "$DBLOCK" doctor
    found good version 'is good'
    exits 0 'json' "$DBLOCK" doctor --json
    valid_json 'doctor on MariaDB'
    mysql_case 1 warning index 'CREATE INDEX more ON dblock_lease (label)' 'DROP INDEX more ON dblock_lease'
    mysql_case 1 warning trigger 'CREATE TRIGGER more BEFORE UPDATE ON dblock_lease FOR EACH ROW SET @x = 1' \
        'DROP TRIGGER more'
    mysql_case 2 unusable engine 'ALTER TABLE dblock_insert ENGINE = MyISAM' \
        'ALTER TABLE dblock_insert ENGINE = InnoDB'
    mysql_case 2 unusable columns 'ALTER TABLE dblock_row MODIFY name VARCHAR(255) NOT NULL' \
        'ALTER TABLE dblock_row MODIFY name VARBINARY(255) NOT NULL'
    mysql_as_admin "DROP DATABASE $own; DROP USER $own@'%'"
fi
finish
