# SPDX-License-Identifier: MIT
# c_string.awk - a line of text as a line of a C string literal. Shared by
# sql_embed.awk and text_embed.awk: awk -f c_string.awk -f sql_embed.awk ...
#
# Goes through the line character by character because the awks disagree about
# backslashes in the replacement of gsub().

function c_line(text,    out, i, c, previous)
{
    out = ""
    previous = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\\" || c == "\"")
            out = out "\\" c
        else if (c == "\t")
            out = out "\\t"
        else if (c == "?" && previous == "?")
            out = out "\\?"     # -std=c11 still reads ??) and its like as trigraphs
        else
            out = out c
        previous = c
    }
    return "    \"" out "\\n\""
}

# The name of a C object for a file: its base name, other characters as "_".
function c_name(path)
{
    sub(/^.*\//, "", path)
    sub(/\.[^.]*$/, "", path)
    gsub(/[^A-Za-z0-9_]/, "_", path)
    return path
}

# Compilers that read these strings have no trouble with their length; only
# -Wpedantic counts them against the 4095 that ISO C guarantees.
function c_preamble(part, source)
{
    print "/* Generated from " source "; edit that instead. */"
    if (part == "define")
        print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
}
