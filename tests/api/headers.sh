#!/bin/bash
# SPDX-License-Identifier: MIT
# headers.sh - each public header alone, twice in one file, in the languages of its
# readers; and the initialisers, which are macros of two languages. Runs beside others.
. "$(dirname "$0")/lib/api.sh"

warnings=(-Wall -Wextra -pedantic -Wshadow -Werror -fsyntax-only -Iinclude)

# attempt COMPILER LANGUAGE STANDARD
attempt()
{
    local header
    if ! command -v "$1" > /dev/null; then
        skip "$1 is not here"
        return
    fi
    for header in include/dblock/*.h include/dblock/sys/*.h; do
        header=${header#include/}
        printf '#include <%s>\n#include <%s>\nextern int stands_alone;\n' "$header" "$header" \
            > "$folder/alone"
        check "$1 -std=$3: $header" "$1" -x "$2" -std="$3" "${warnings[@]}" "$folder/alone"
    done
    cat > "$folder/initialisers" << 'EOT'
#include <dblock/dblock.h>
int use_all(void);
int use_all(void)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_event event = DBLOCK_EVENT_INIT;
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    options.wait_ms = DBLOCK_FOREVER;
    return options.struct_size + config.struct_size + grant.struct_size + event.struct_size +
        stats.struct_size + filter.struct_size > 0;
}
EOT
    # a C++ program may leave members out on purpose, as C does
    check "$1 -std=$3: initialisers" "$1" -x "$2" -std="$3" "${warnings[@]}" \
        -Wno-missing-field-initializers "$folder/initialisers"
}

for compiler in gcc clang; do
    for standard in c99 c11 c17; do
        attempt $compiler c $standard
    done
done
for compiler in g++ clang++; do
    for standard in c++11 c++17 c++20; do
        attempt $compiler c++ $standard
    done
done
finish
