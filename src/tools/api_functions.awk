# SPDX-License-Identifier: MIT
# api_functions.awk - the functions that headers mark with DBLOCK_API, one name
# a line. ci/checks/exports compares them with the version scripts.

/^[ \t]*#/ {
    next
}

{
    text = text " " $0
}

END {
    # Comments first: they may mention DBLOCK_API too.
    while ((start = index(text, "/*")) > 0) {
        rest = substr(text, start + 2)
        end = index(rest, "*/")
        if (end == 0)
            break
        text = substr(text, 1, start - 1) " " substr(rest, end + 2)
    }
    n = split(text, piece, /DBLOCK_API[ \t]/)
    for (i = 2; i <= n; i++) {
        open = index(piece[i], "(")
        if (open == 0)
            continue
        head = substr(piece[i], 1, open - 1)
        sub(/[ \t]*$/, "", head)
        if (match(head, /[A-Za-z_][A-Za-z0-9_]*$/))
            print substr(head, RSTART, RLENGTH)
    }
}
