#!/bin/bash
# SPDX-License-Identifier: MIT
# between.sh - HAProxy stands between, and ends a connection on which nothing was said for
# less than a third of the ttl. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"
PATH=$PATH:/usr/sbin
if ! command -v haproxy > /dev/null; then
    echo 'SKIP: no haproxy'
    exit 77
fi

# After 0.6 s without a byte, from either side. Sockets of files: there a port need not be free.
cat > "$folder/haproxy.cfg" <<END
global
    maxconn 200
defaults
    mode tcp
    timeout connect 2s
    timeout client 600ms
    timeout server 600ms
END
listens()
{
    printf 'listen %s\n    bind unix@%s mode 666\n    server it 127.0.0.1:%s\n' "$1" "$2" "$3" \
        >> "$folder/haproxy.cfg"
}

between_pgsql=
between_mysql=
if [ -n "${DBLOCK_TEST_PGSQL_PORT:-}" ]; then
    listens pgsql "$folder/.s.PGSQL.5432" "$DBLOCK_TEST_PGSQL_PORT"
    between_pgsql="${DBLOCK_TEST_PGSQL%%@*}@/dblock_test?host=$folder&port=5432"
fi
if [ -n "${DBLOCK_TEST_MYSQL_PORT:-}" ]; then
    listens mysql "$folder/mysql" "$DBLOCK_TEST_MYSQL_PORT"
    between_mysql="${DBLOCK_TEST_MYSQL%%@*}@localhost/dblock_test?socket=$folder/mysql"
fi
if [ -z "$between_pgsql$between_mysql" ]; then
    echo 'SKIP: no server is known (ci/services)'
    exit 77
fi
start haproxy -db -f "$folder/haproxy.cfg"
haproxy=$!

# Heartbeats every two thirds of a second, so each finds its connection ended: it is held beyond
# its ttl, and nobody else gets it before it is given back.
held()
{
    local strategy=$1 waiter
    rm -f "$folder/began" "$folder/ended"
    start "$DBLOCK" run -S "$strategy" -t 2 --report "$folder/report" "$name" -- \
        `# sleeps because it is to be held beyond its ttl` \
        sh -c "touch $folder/began; sleep 3; date +%s%N > $folder/ended"
    holder=$!
    until_true "$on: is held" test -e "$folder/began" || return
    start "$DBLOCK" run -S "$strategy" -w 30 "$name" -- sh -c "date +%s%N > $folder/next"
    waiter=$!
    ended "$holder" 0 "$on: the holder keeps it"
    ended "$waiter" 0 "$on: who waits gets it"
    check "$on: and after it was given back" \
        test "$(cat "$folder/next")" -ge "$(cat "$folder/ended")"
    check "$on: within six seconds" \
        test "$(cat "$folder/next")" -le "$(($(cat "$folder/ended") + 6000000000))"
}

# The lock goes with its connection: the holder is told, and others get it.
told()
{
    local strategy=$1 begun=$SECONDS
    start "$DBLOCK" run -S "$strategy" "$name" -- sleep 60
    holder=$!
    ended "$holder" 76 "$on: the holder is told"
    check "$on: soon" test $((SECONDS - begun)) -le 6
    exits 0 "$on: others get it" "$DBLOCK" run -S "$strategy" -w 10 "$name" -- true
}

# Nothing passes any more, and nobody says so. The exit status does not wait for answers to a
# release and to a farewell.
silent()
{
    local strategy=$1 begun
    rm -f "$folder/began"
    start "$DBLOCK" run -S "$strategy" -t 2 --report "$folder/report" "$name" -- \
        sh -c "touch $folder/began; exec sleep 60"
    holder=$!
    until_true "$on, silence: is held" test -e "$folder/began" || return
    kill -STOP "$haproxy"
    begun=$SECONDS
    ended "$holder" 76 "$on, silence: the holder is told"
    check "$on, silence: soon" test $((SECONDS - begun)) -le 5
    kill -CONT "$haproxy"
    out=$(cat "$folder/report")
    is "$(json '[.outcome, .exit] | @json')" '["lost",76]' "$on, silence: is reported"
    exits 0 "$on, silence: others get it" "$DBLOCK" run -S "$strategy" -w 10 "$name" -- true
}

through()
{
    local strategy
    for strategy in lease insert; do
        on="$1 $strategy"
        held "$strategy"
    done
    on="$1 lease"
    silent lease
    for strategy in row advisory; do
        on="$1 $strategy"
        told "$strategy"
    done
}

if [ -n "$between_pgsql" ]; then
    "$DBLOCK" init -q -d "$DBLOCK_TEST_PGSQL" || exit 1
    export DBLOCK_URL=$between_pgsql
    until_true 'HAProxy listens' test -S "$folder/.s.PGSQL.5432"
    through PostgreSQL
fi
if [ -n "$between_mysql" ]; then
    "$DBLOCK" init -q -d "$DBLOCK_TEST_MYSQL" || exit 1
    export DBLOCK_URL=$between_mysql
    until_true 'HAProxy listens' test -S "$folder/mysql"
    through MariaDB
fi
finish
