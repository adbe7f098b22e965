# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# galera.sh - three nodes of MariaDB that replicate to each other: galera1, galera2 and
# galera3. `restart galera2` joins again; after all have gone, the first to come needs
# --wsrep-new-cluster. A node that is not heard for two seconds is put out.
#
# All begin as copies of one data folder, and the cluster's ports are chosen once.

galera_library()
{
    local file
    for file in /usr/lib/galera/libgalera_smm.so /usr/lib/*/galera/libgalera_smm.so; do
        [ ! -e "$file" ] || {
            echo "$file"
            return 0
        }
    done
    return 1
}

is_installed_galera()
{
    is_installed_mariadb && galera_library > /dev/null && command -v wsrep_sst_rsync > /dev/null &&
        command -v rsync > /dev/null && command -v lsof > /dev/null
}

is_ready_galera()
{
    [ "$(mariadb_sql "$1" "show status like 'wsrep_ready'")" = "wsrep_ready	ON" ]
}

prepare_galera()
{
    if [ "$1" = galera1 ]; then
        prepare_mariadb "$1"
    else
        cp -a "$folder/galera1/data.copy" "$folder/$1/data"
    fi
}

# command_galera NAME PORT. The ports of the group, of state transfers and of increments are
# in `galera.ports`, three a node.
command_galera()
{
    local number=${1#galera} ports address node
    [ -e "$folder/galera.ports" ] ||
        for _ in 1 2 3 4 5 6 7 8 9; do choose_port; done > "$folder/galera.ports"
    mapfile -t ports < "$folder/galera.ports"
    for node in 0 3 6; do
        address+=,127.0.0.1:${ports[node]}
    done
    node=$(((number - 1) * 3))
    command_mariadb "$1" "$2"
    echo --binlog-format=ROW --innodb-autoinc-lock-mode=2 --innodb-log-file-size=16M \
        --wsrep-on=ON --wsrep-provider="$(galera_library)" --wsrep-cluster-name=dblock \
        --wsrep-cluster-address="gcomm://${address#,}" --wsrep-node-name="$1" \
        --wsrep-node-address="127.0.0.1:${ports[node]}" \
        --wsrep-node-incoming-address="127.0.0.1:$2" --wsrep-sst-method=rsync \
        --wsrep-sst-receive-address="127.0.0.1:${ports[node + 1]}" \
        --wsrep-provider-options="gmcast.listen_addr=tcp://127.0.0.1:${ports[node]};ist.recv_addr=127.0.0.1:${ports[node + 2]};gcache.size=64M;evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.install_timeout=PT5S;evs.inactive_timeout=PT5S"
}

set_up_galera()
{
    return 0
}

# The data of the first node, with its users, for all; and then all three.
start_cluster()
{
    local name pids=() pid failed=0
    prepare galera1
    launch galera1 --wsrep-new-cluster
    set_up_mariadb galera1 || die "galera1: cannot make its test user"
    stop_one galera1
    cp -a "$folder/galera1/data" "$folder/galera1/data.copy"
    restart_one galera1 --wsrep-new-cluster
    for name in galera2 galera3; do
        (prepare "$name" && launch "$name") &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=1
    done
    rm -rf "$folder/galera1/data.copy"
    return "$failed"
}

env_galera()
{
    mysql_env "$1" "DBLOCK_TEST_GALERA${1#galera}"
    [ "$1" != galera1 ] || export_line DBLOCK_TEST_GALERA "$(for name in 1 2 3; do
        printf '%s ' "mysql://dblock_test:$password@127.0.0.1:$(port_of "galera$name")/dblock_test"
    done)"
}
