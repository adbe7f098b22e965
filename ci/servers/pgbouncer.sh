# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# pgbouncer.sh - PgBouncer with transaction pooling: `pgbouncer18` before `pgsql18`. The same
# database is there as dblock_test_session, with session pooling.

is_installed_pgbouncer()
{
    command -v pgbouncer > /dev/null && is_installed "pgsql${1#pgbouncer}"
}

pgbouncer_url()
{
    echo "postgresql://dblock_test:$password@127.0.0.1:$(port_of "$1")/dblock_test"
}

is_ready_pgbouncer()
{
    psql -X -q -At "$(pgbouncer_url "$1")" -c 'select 1'
}

prepare_pgbouncer()
{
    return 0
}

command_pgbouncer()
{
    local server=pgsql${1#pgbouncer}
    # Written here as it holds the port. auth_type any: each database line says
    # as whom to log in.
    cat > "$folder/$1/ini" << INI
[databases]
dblock_test = host=$folder/$server port=$(port_of "$server") user=dblock_test
dblock_test_session = host=$folder/$server port=$(port_of "$server") user=dblock_test dbname=dblock_test pool_mode=session
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $2
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
INI
    echo pgbouncer "$folder/$1/ini"
}

set_up_pgbouncer()
{
    return 0
}

env_pgbouncer()
{
    export_line "DBLOCK_TEST_PGBOUNCER${1#pgbouncer}" "$(pgbouncer_url "$1")"
}
