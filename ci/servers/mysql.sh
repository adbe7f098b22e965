# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# mysql.sh - Oracle's MySQL, as ci/fetch/mysql fetched it: with the C library that it was
# built for, so by the dynamic linker of that.

is_installed_mysql()
{
    fetched mysql > /dev/null && command -v mariadb > /dev/null
}

# mysql_program ARGUMENT...: the words that run its server
mysql_program()
{
    local root libraries linker
    root=$(fetched mysql)
    for libraries in "$root"/usr/lib/*-linux-gnu*; do
        for linker in "$libraries"/ld-linux*.so.*; do
            echo "$linker" --library-path "$libraries" "$root/usr/sbin/mysqld" --no-defaults \
                --basedir="$root/usr" "$@"
            return
        done
    done
}

is_ready_mysql()
{
    is_ready_mariadb "$1"
}

prepare_mysql()
{
    # shellcheck disable=SC2046 # words without blanks
    as mysql $(mysql_program --initialize-insecure --datadir="$folder/$1/data" \
        --tmpdir="$folder/$1/tmp") \
        > "$folder/$1/log" 2>&1
}

command_mysql()
{
    mysql_program --datadir="$folder/$1/data" --socket="$folder/$1/socket" --port="$2" \
        --bind-address=127.0.0.1 --pid-file="$folder/$1/server.pid" --tmpdir="$folder/$1/tmp" \
        --mysqlx=OFF --secure-file-priv=NULL --innodb-buffer-pool-size=128M \
        --max-connections=500 --skip-name-resolve
}

set_up_mysql()
{
    set_up_mariadb "$1"
}

env_mysql()
{
    mysql_env "$1" DBLOCK_TEST_ORACLE
    export_line DBLOCK_TEST_ORACLE_ROOT "$(fetched mysql)"
}
