#!/bin/bash
# SPDX-License-Identifier: MIT
# install.sh - a stranger with the installed tree and pkg-config: compiles, links and
# runs an example, shared and static; runs the command. A second installation changes
# nothing, and uninstall leaves nothing.
# Time limit: 600 s
. "$(dirname "$0")/lib/api.sh"

root=$folder/root
words=(BUILD="$build" DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib)

# What is there: names, modes, contents or targets.
listing()
{
    (cd "$root" && find . -type f -exec stat -c '%A %n' {} + -exec sha256sum {} + &&
        find . -type l -printf '%p -> %l\n') | sort
}

check 'make install' "$make" -s install "${words[@]}"
listing > "$folder/first"
check 'make install again' "$make" -s install "${words[@]}"
listing > "$folder/second"
same "$folder/second" "$folder/first" 'a second installation changes nothing'

for file in include/dblock/dblock.h lib/libdblock.so lib/libdblock.a lib/pkgconfig/dblock.pc; do
    check "installed: $file" test -s "$root/usr/$file"
done
check 'nothing outside of the prefix' test "$(ls "$root")" = usr

export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
# The paths are those of the system, and so would be left out.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1

# init NAME: a database file with the tables
init()
{
    LD_LIBRARY_PATH=$root/usr/lib "$root/usr/bin/dblock" init -q -d "sqlite:$folder/$1.db"
}

if ! has_driver sqlite; then
    skip 'the example: this build has no SQLite driver'
elif [ ! -x "$root/usr/bin/dblock" ]; then
    skip 'the example: this build has no command that makes the tables'
else
    flags=$(pkg-config --cflags --libs dblock-sqlite)
    # shellcheck disable=SC2086 # a list of words
    check 'compiles and links, shared' \
        "$cc" -std=c11 -Wall -Wextra -Werror -o "$folder/shared" tests/examples/acquire.c $flags
    check 'the command makes the tables' init shared
    check 'runs, shared' \
        env LD_LIBRARY_PATH="$root/usr/lib" "$folder/shared" "sqlite:$folder/shared.db" stranger

    flags=$(pkg-config --static --cflags --libs dblock-sqlite)
    # shellcheck disable=SC2086
    check 'compiles and links, static' \
        "$cc" -std=c11 -static -o "$folder/static" tests/examples/acquire.c $flags
    check 'needs no library then' test -z "$(readelf -d "$folder/static" | grep NEEDED)"
    check 'the command makes the tables, again' init static
    check 'runs, static' "$folder/static" "sqlite:$folder/static.db" stranger
fi

for driver in "${drivers[@]}"; do
    {
        printf '#include <dblock/%s.h>\nint main(void)\n' "$driver"
        printf '{\n    return dblock_%s_driver() == NULL;\n}\n' "$driver"
    } > "$folder/stranger.c"
    flags=$(pkg-config --cflags --libs "dblock-$driver")
    # shellcheck disable=SC2086
    check "dblock-$driver: compiles and links" \
        "$cc" -std=c11 -Wall -Werror -o "$folder/stranger" "$folder/stranger.c" $flags
    check "dblock-$driver: runs" env LD_LIBRARY_PATH="$root/usr/lib" "$folder/stranger"
done

if [ -x "$root/usr/bin/dblock" ]; then
    version=$(sed -n 's/^#define DBLOCK_VERSION_TEXT "\(.*\)"/\1/p' include/dblock/version.h)
    export LD_LIBRARY_PATH=$root/usr/lib
    said=$("$root/usr/bin/dblock" --version)
    check "dblock --version says $version" test "${said/$version/}" != "$said"
    if has_driver sqlite; then
        export DBLOCK_URL=sqlite:$folder/command.db
        check 'dblock init' "$root/usr/bin/dblock" init -q
        check 'dblock run' "$root/usr/bin/dblock" run -n stranger -- true
        unset DBLOCK_URL
    fi
    unset LD_LIBRARY_PATH
fi

check 'make uninstall' "$make" -s uninstall "${words[@]}"
find "$root" ! -type d > "$folder/left"
same "$folder/left" /dev/null 'uninstall leaves nothing'
finish
