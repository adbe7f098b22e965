# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# pgsql.sh - PostgreSQL: `pgsql` is the newest that is installed, `pgsql18` the one that
# ci/fetch/pgsql18 fetched.

pg_bin()
{
    local newest
    if [ "$1" = pgsql18 ]; then
        newest=$(fetched pgsql18) && echo "$newest/native/bin"
        return
    fi
    newest=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
    [ -x "$newest" ] || newest=$(command -v postgres) || return 1
    dirname "$newest"
}

is_installed_pgsql()
{
    [ -n "$(pg_bin "$1")" ] && command -v psql > /dev/null
}

# pgsql_sql NAME DATABASE STATEMENT
pgsql_sql()
{
    psql -X -q -At -v ON_ERROR_STOP=1 \
        "host=$folder/$1 port=$(port_of "$1") user=postgres dbname=$2" -c "$3"
}

is_ready_pgsql()
{
    pgsql_sql "$1" postgres 'select 1'
}

prepare_pgsql()
{
    as postgres "$(pg_bin "$1")/initdb" -D "$folder/$1/data" -U postgres -E UTF8 \
        --locale=C.UTF-8 -N --auth-local=trust --auth-host=scram-sha-256 --no-instructions \
        > "$folder/$1/log" 2>&1 &&
        # where tests with thousands of connections come from, and those that cut an address off
        echo 'host all all 127.77.0.0/16 trust' >> "$folder/$1/data/pg_hba.conf"
}

command_pgsql()
{
    echo "$(pg_bin "$1")/postgres" -D "$folder/$1/data" -k "$folder/$1" -p "$2" \
        -c listen_addresses=127.0.0.1 -c max_connections=500 -c shared_buffers=64MB \
        -c log_line_prefix=%m_%p_%u_ -c timezone=UTC \
        -c dynamic_shared_memory_type=mmap # in its folder, where a crash leaves nothing
}

set_up_pgsql()
{
    pgsql_sql "$1" postgres "create role dblock_test login password '$password'" &&
        pgsql_sql "$1" postgres 'create database dblock_test owner dblock_test'
}

env_pgsql()
{
    local port place=DBLOCK_TEST_PGSQL${1#pgsql}
    port=$(port_of "$1")
    export_line "$place" "postgresql://dblock_test:$password@/dblock_test?host=$folder/$1&port=$port"
    export_line "${place}_TCP" "postgresql://dblock_test:$password@127.0.0.1:$port/dblock_test"
    export_line "${place}_ADMIN" "postgresql://postgres@/dblock_test?host=$folder/$1&port=$port"
    export_line "${place}_DATA" "$folder/$1/data"
    export_line "${place}_PORT" "$port"
    export_line "${place}_PIDFILE" "$folder/$1/pid"
}
