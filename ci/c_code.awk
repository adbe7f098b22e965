# SPDX-License-Identifier: MIT
# c_code.awk - C sources as "FILE:LINE: code", without comments and with empty
# strings, for checks that look for words in code. With -v keep=line_comments a
# "//" that begins a comment is kept, and what follows it is dropped.

FNR == 1 {
    in_comment = 0
}

{
    out = ""
    text = $0
    n = length(text)
    quote = ""
    for (i = 1; i <= n; i++) {
        c = substr(text, i, 1)
        two = substr(text, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (quote != "") {
            if (c == "\\") {
                i++
            } else if (c == quote) {
                quote = ""
                out = out c
            }
        } else if (two == "/*") {
            in_comment = 1
            out = out " "
            i++
        } else if (two == "//") {
            if (keep == "line_comments")
                out = out two
            break
        } else {
            if (c == "\"" || c == "'")
                quote = c
            out = out c
        }
    }
    if (out !~ /^[ \t]*$/)
        print FILENAME ":" FNR ": " out
}
