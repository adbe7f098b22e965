# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# mariadb.sh - MariaDB (or the mysqld of the machine), alone.

mariadb_server()
{
    command -v mariadbd || command -v mysqld
}

is_installed_mariadb()
{
    mariadb_server > /dev/null && command -v mariadb-install-db > /dev/null
}

# mariadb_sql NAME STATEMENTS, for all that speak this protocol
mariadb_sql()
{
    mariadb --no-defaults -uroot -S "$folder/$1/socket" -NBe "$2"
}

is_ready_mariadb()
{
    mariadb_sql "$1" 'select 1'
}

prepare_mariadb()
{
    as mysql mariadb-install-db --no-defaults --datadir="$folder/$1/data" --tmpdir="$folder/$1/tmp" \
        --auth-root-authentication-method=normal --skip-test-db > "$folder/$1/log" 2>&1
}

command_mariadb()
{
    echo "$(mariadb_server)" --no-defaults --datadir="$folder/$1/data" \
        --socket="$folder/$1/socket" --port="$2" --bind-address=127.0.0.1 \
        --pid-file="$folder/$1/server.pid" --tmpdir="$folder/$1/tmp" \
        --innodb-buffer-pool-size=128M --performance-schema=OFF --max-connections=500 \
        --skip-name-resolve
}

set_up_mariadb()
{
    # Also databases whose names begin so: tests make some of their own.
    mariadb_sql "$1" "
        create database dblock_test;
        create user dblock_test@localhost identified by '$password';
        create user dblock_test@'127.0.0.1' identified by '$password';
        grant all on \`dblock_test%\`.* to dblock_test@localhost, dblock_test@'127.0.0.1';
        create user if not exists root@'127.0.0.1';
        alter user root@'127.0.0.1' identified by '$password';
        grant all on *.* to root@'127.0.0.1' with grant option;"
}

# mysql_env NAME VARIABLE, for all that speak this protocol
mysql_env()
{
    local port
    port=$(port_of "$1")
    export_line "$2" "mysql://dblock_test:$password@127.0.0.1:$port/dblock_test"
    export_line "$2_SOCKET" "mysql://dblock_test:$password@localhost/dblock_test?socket=$folder/$1/socket"
    export_line "$2_ADMIN" "mysql://root:$password@127.0.0.1:$port/dblock_test"
    export_line "$2_DATA" "$folder/$1/data"
    export_line "$2_PORT" "$port"
    export_line "$2_PIDFILE" "$folder/$1/pid"
}

env_mariadb()
{
    mysql_env "$1" "DBLOCK_TEST_MYSQL${1#mariadb}"
}
