#!/bin/bash
# SPDX-License-Identifier: MIT
# failover.sh - the primary of PostgreSQL dies and its standby takes over, while locks are held and
# taken through a URL that names both. With a standby that commits wait for nothing is forgotten;
# without, the last grants may be, and what is promised then is that tokens go on rising: who
# checks them is safe. PITFALL(F3). On servers of its own. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"
. "$(dirname "$0")/lib/servers.sh"
if ! has_driver postgresql; then
    echo 'SKIP: the driver for PostgreSQL was not built'
    exit 77
fi

# on VARIABLE SQL: as the superuser of that server
on()
{
    psql -X -q -At "$(url_of "$1")" -c "$2"
}

begin()
{
    start_servers pgsql standby
    primary_port=$(url_of DBLOCK_TEST_PGSQL_PORT)
    standby_port=$(url_of DBLOCK_TEST_STANDBY_PORT)
    DBLOCK_URL="postgresql://dblock_test:$password@127.0.0.1:$primary_port,127.0.0.1:$standby_port"
    export DBLOCK_URL="$DBLOCK_URL/dblock_test?target_session_attrs=read-write"
    exits 0 "$how: init through both" "$DBLOCK" init -q
}

has_caught_up()
{
    [ "$(on DBLOCK_TEST_PGSQL_ADMIN "select count(*) from pg_stat_replication
        where replay_lsn = pg_current_wal_lsn()")" = 1 ]
}

# A release commits lazily: what it wrote may be in no file yet, and then it is not in what the
# standby has to catch up with. A commit that waits writes all that came before it; and it waits only
# if its transaction has written something.
catch_up()
{
    on DBLOCK_TEST_PGSQL_ADMIN "select pg_logical_emit_message(true, 'test', '')" > /dev/null
    until_true "$1" has_caught_up
}

is_waited_for()
{
    [ "$(on DBLOCK_TEST_PGSQL_ADMIN "select sync_state from pg_stat_replication")" = sync ]
}

has_tokens()
{
    [ -e "$folder/tokens" ] && [ "$(wc -l < "$folder/tokens")" -ge "$1" ]
}

fail_over()
{
    services kill9 pgsql
    is "$(on DBLOCK_TEST_STANDBY_ADMIN 'select pg_promote()')" t "$how: the standby takes over"
}

# ------------------------------------------------- the standby by itself

how='standby'
begin
catch_up "$how: the tables are there"
alone="postgresql://dblock_test:$password@127.0.0.1:$standby_port/dblock_test"
for strategy in lease insert row advisory 'advisory --id 4711'; do
    # shellcheck disable=SC2086 # the id is a word of its own
    exits 77 "$how: $strategy is refused" "$DBLOCK" run -d "$alone" -n -S $strategy x -- true
    like "$err" 'connect to the primary' "$how: $strategy, with the way out"
done
stop_servers

# ------------------------------------------------- commits wait for the standby

how='synchronous'
begin
on DBLOCK_TEST_PGSQL_ADMIN "alter system set synchronous_standby_names = '*'"
on DBLOCK_TEST_PGSQL_ADMIN 'select pg_reload_conf()' > /dev/null
until_true 'the standby is waited for' is_waited_for
kept=$("$DBLOCK" acquire -t 10m kept)
start "$DBLOCK" run -t 15 --report "$folder/report" held -- sleep 300
holder=$!
until_true "$how: is held" is_held held
# One grant after the other, by processes of their own. The release of one may meet the end of the
# primary: the name is free after its ttl then.
cat > "$folder/takes" <<'END'
#!/bin/sh
while [ ! -e "$HOME/stop" ]; do
    "$DBLOCK" run -w 30 -t 2 counter -- sh -c 'echo "$DBLOCK_TOKEN" >> "$HOME/tokens"' || exit
done
END
chmod +x "$folder/takes"
start "$folder/takes"
taker=$!
until_true "$how: grants" has_tokens 5
fail_over
until_true "$how: grants after it" has_tokens $(($(wc -l < "$folder/tokens") + 5))
touch "$folder/stop"
ended "$taker" 0 "$how: no taker fails"
check "$how: tokens rise across it" sort -n -c -u "$folder/tokens"
exits 75 "$how: what was held is held" "$DBLOCK" run -n kept -- true
check "$how: the holder that heartbeats goes on" alive "$holder"
exits 75 "$how: and keeps its lock" "$DBLOCK" run -n held -- true
kill -TERM "$holder"
ended "$holder" 143 "$how: until it is told to end"
exits 0 "$how: a grant of before is given back" "$DBLOCK" release "$kept"
exits 0 "$how: and can be had" "$DBLOCK" run -n kept -- true
stop_servers

# --------------------------------------------- commits wait for nobody, and some are lost

how='asynchronous'
begin
catch_up "$how: the tables are there"
"$DBLOCK" run forgotten -- true
catch_up "$how: what was before is there"
on DBLOCK_TEST_STANDBY_ADMIN "alter system set primary_conninfo = ''"
on DBLOCK_TEST_STANDBY_ADMIN 'select pg_reload_conf()' > /dev/null
is_cut_off()
{
    [ "$(on DBLOCK_TEST_PGSQL_ADMIN 'select count(*) from pg_stat_replication')" = 0 ]
}
until_true "$how: the standby hears nothing more" is_cut_off
last=0
for _ in 1 2 3 4 5; do # more of them than the standby has sequence values in its log
    forgotten=$("$DBLOCK" acquire -t 10m forgotten)
    last=$(cut -d: -f4 <<< "$forgotten")
    "$DBLOCK" release "$forgotten" > /dev/null
done
forgotten=$("$DBLOCK" acquire -t 10m forgotten)
last=$(cut -d: -f4 <<< "$forgotten")
fail_over
exits 0 "$how: a grant that was forgotten excludes nobody" "$DBLOCK" run -w 20 forgotten -- \
    sh -c 'echo "$DBLOCK_TOKEN"'
check "$how: but its token is exceeded ($last, $out)" test "${out:-0}" -gt "$last"
exits 76 "$how: and its holder is told" "$DBLOCK" release "$forgotten"
stop_servers
finish
