#!/bin/bash
# SPDX-License-Identifier: MIT
# names.sh - all name servers take questions and answer none: every call ends in time all the same.
# In namespaces of its own, with its own /etc/resolv.conf, so it needs root, unshare(1), ip(8) and
# python3. Needs no server. Runs beside others.
if [ "${1-}" != inside ]; then
    if ! unshare -mn true 2> /dev/null || ! ip -V > /dev/null 2>&1 ||
        ! python3 -V > /dev/null 2>&1; then
        echo 'SKIP: needs root, namespaces, ip and python3'
        exit 77
    fi
    exec unshare -mn "$0" inside
fi
. "$(dirname "$0")/lib/cli.sh"

ip link set lo up
python3 - "$folder/asked" << 'END' &
import select, socket, sys
silent = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for number, server in enumerate(silent):
    server.bind(("127.0.0.%d" % (number + 1), 53))
with open(sys.argv[1], "w") as asked:
    asked.write("listening\n")
while True:
    for server in select.select(silent, [], [])[0]:
        server.recv(512)
        with open(sys.argv[1], "a") as asked:
            asked.write("asked\n")
END
started+=($!)
until_true 'the name servers listen' exists "$folder/asked"
printf 'nameserver 127.0.0.%d\n' 1 2 3 > "$folder/resolv.conf"
mount --bind "$folder/resolv.conf" /etc/resolv.conf
echo '127.0.0.5 db2.example' > "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts

# in_time WHAT COMMAND...: fails for want of a connection, long before the C library has given up (28 s)
in_time()
{
    local what=$1 start=$SECONDS
    shift
    exits 69 "$what" timeout 60 "$@"
    check "$what: in time" test $((SECONDS - start)) -lt 18
}

for scheme in postgresql mysql; do
    if ! has_driver $scheme; then
        echo "# the driver for $scheme was not built"
        continue
    fi
    : > "$folder/asked"
    in_time "$scheme: run" "$DBLOCK" run -n -d $scheme://u:p@db1.example/app x -- true
    like "$err" 'the name server does not answer' "$scheme: says why"
    check "$scheme: was asked" test -s "$folder/asked"
done
if has_driver postgresql; then
    : > "$folder/asked"
    in_time 'two hosts' "$DBLOCK" run -n -d postgresql://u:p@db1.example,127.0.0.1:9/app x -- true
    like "$err" 'port 9 failed' 'two hosts: the other one has its turn'
    in_time 'known hosts' "$DBLOCK" run -n -d postgresql://u:p@127.0.0.1:8,db2.example:9/app x -- true
    like "$err" '"127.0.0.5", port 9 failed' 'known hosts: its own address and port'
fi
finish
