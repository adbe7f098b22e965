# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# standby.sh - a standby of the server `pgsql`, which must run: it follows that one, and is not
# waited for until synchronous_standby_names says so there.

is_installed_standby()
{
    is_installed_pgsql pgsql && [ -x "$(pg_bin pgsql)/pg_basebackup" ]
}

is_ready_standby()
{
    pgsql_sql "$1" postgres 'select 1'
}

prepare_standby()
{
    as postgres "$(pg_bin pgsql)/pg_basebackup" -h "$folder/pgsql" -p "$(port_of pgsql)" \
        -U postgres -D "$folder/$1/data" -R -X stream -c fast > "$folder/$1/log" 2>&1
}

command_standby()
{
    command_pgsql "$1" "$2"
}

set_up_standby()
{
    return 0
}

env_standby()
{
    local port
    port=$(port_of "$1")
    export_line DBLOCK_TEST_STANDBY "postgresql://dblock_test:$password@127.0.0.1:$port/dblock_test"
    export_line DBLOCK_TEST_STANDBY_ADMIN "postgresql://postgres@/dblock_test?host=$folder/$1&port=$port"
    export_line DBLOCK_TEST_STANDBY_PORT "$port"
}
