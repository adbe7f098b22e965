# SPDX-License-Identifier: MIT
# layout.awk - from public headers to a C program that prints the size of each struct
# and the place of each member. Knows the headers' style: one struct at a time, one
# declaration a line or several of one type, no bit fields.

{
    line = line " " $0
}

END {
    while ((start = index(line, "/*")) > 0) {
        rest = substr(line, start + 2)
        line = substr(line, 1, start - 1) " " substr(rest, index(rest, "*/") + 2)
    }
    while (match(line, /struct dblock_[a-z_]+ \{/)) {
        head = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        split(head, word, " ")
        name = word[2]
        body = substr(line, 1, index(line, "}") - 1)
        printf "    printf(\"%s %%zu\\n\", sizeof(struct %s));\n", name, name
        n = split(body, declaration, ";")
        for (i = 1; i <= n; i++) {
            m = split(declaration[i], part, ",")
            for (j = 1; j <= m; j++) {
                member = part[j]
                sub(/\[.*/, "", member)
                gsub(/[ \t]+$/, "", member)
                if (match(member, /[a-z_0-9]+$/) == 0)
                    continue
                member = substr(member, RSTART)
                printf "    printf(\"%s.%s %%zu %%zu\\n\", offsetof(struct %s, %s), ", \
                    name, member, name, member
                printf "sizeof(((struct %s *)0)->%s));\n", name, member
            }
        }
    }
}
