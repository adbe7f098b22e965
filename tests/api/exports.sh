#!/bin/bash
# SPDX-License-Identifier: MIT
# exports.sh - what the libraries show to the linker: the functions of the headers, each
# in a version node, and nothing else; their names and what they need. Runs beside others.
. "$(dirname "$0")/lib/api.sh"

soversion=$(sed -n 's/^#define DBLOCK_VERSION_MAJOR //p' include/dblock/version.h)
LC_ALL=C

functions_of()
{
    local header
    for header in "$@"; do
        awk -f src/tools/api_functions.awk "$header"
    done | sort
}

for library in libdblock libdblock-load "${drivers[@]/#/libdblock-}"; do
    file=$build/lib/$library.so
    if [ ! -e "$file" ]; then
        skip "$library is not built"
        continue
    fi
    if [ $library = libdblock ]; then
        functions_of include/dblock/check.h include/dblock/dblock.h include/dblock/many.h \
            include/dblock/status.h include/dblock/sys/*.h
    else
        functions_of "include/dblock/${library#libdblock-}.h"
    fi > "$folder/headers"
    sed -n 's/^    \([a-z_0-9]*\);.*/\1/p' "src/link/$library.map" | sort > "$folder/map"
    nm -D --defined-only --with-symbol-versions "$file" | awk '$2 != "A" { print $3 }' \
        > "$folder/versioned"
    sed 's/@.*//' "$folder/versioned" | sort > "$folder/exported"
    same "$folder/map" "$folder/headers" "$library: the map has the functions of the headers"
    same "$folder/exported" "$folder/map" "$library: what is exported is in the map"
    check "$library: each in a version node" \
        test "$(grep -c '@@DBLOCK_' "$folder/versioned")" = "$(wc -l < "$folder/versioned")"
    check "$library: exports begin with dblock_" test -z "$(grep -v '^dblock_' "$folder/exported")"

    dynamic=$(readelf -d "$file")
    needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<< "$dynamic" | sort | tr '\n' ' ')
    soname=$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<< "$dynamic")
    check "$library: soname $soname" test "$soname" = "$library.so.$soversion"
    case $library in
    libdblock) allowed='libc.so.6' ;;
    libdblock-load) allowed='libc.so.6|libdblock.so.0' ;;
    libdblock-sqlite) allowed='libc.so.6|libdblock.so.0|libsqlite3.so.*' ;;
    libdblock-pgsql) allowed='libc.so.6|libdblock.so.0|libpq.so.*' ;;
    libdblock-mysql) allowed='libc.so.6|libdblock.so.0|libmariadb.so.*|libmysqlclient.so.*' ;;
    esac
    check "$library: needs $needed" \
        test -z "$(tr ' ' '\n' <<< "$needed" | grep -vxE "$allowed|ld-linux.*|")"
    check "$library: no run path" test -z "$(grep -E 'R(UN)?PATH' <<< "$dynamic")"
done
finish
