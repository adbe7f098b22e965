#!/bin/bash
# SPDX-License-Identifier: MIT
# layout.sh - the size of every public struct and the place of every member, against
# layout.golden: programs that were compiled against an older header pass structs of
# that size. A difference is a new soname, or a mistake; members may be added at the end
# of those that begin with struct_size (then: tests/api/layout.sh --write).
# The numbers are those of 64-bit machines. Runs beside others.
. "$(dirname "$0")/lib/api.sh"

if [ "$(getconf LONG_BIT)" != 64 ]; then
    echo 'SKIP: the numbers are those of 64-bit machines'
    exit 77
fi
{
    printf '#include <dblock/check.h>\n#include <dblock/dblock.h>\n#include <stddef.h>\n#include <stdio.h>\n'
    printf 'int main(void)\n{\n'
    awk -f tests/api/layout.awk include/dblock/status.h include/dblock/dblock.h include/dblock/check.h
    printf '    return 0;\n}\n'
} > "$folder/layout.c"
check 'the program compiles' \
    "$cc" -std=c11 -Wall -Werror -Iinclude -o "$folder/layout" "$folder/layout.c"
"$folder/layout" > "$folder/layout.now"
[ "${1:-}" != --write ] || cp "$folder/layout.now" tests/api/layout.golden
same "$folder/layout.now" tests/api/layout.golden 'every struct is as it was'
check 'struct dblock_error has 1024 bytes' grep -qx 'dblock_error 1024' "$folder/layout.now"
check 'structs that grow say their size first' test -z "$(sed -n \
    's/^\(dblock_[a-z]*\)\.struct_size \([0-9]*\) .*/\1 \2/p' "$folder/layout.now" | grep -v ' 0$')"
finish
