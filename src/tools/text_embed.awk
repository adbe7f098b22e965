# SPDX-License-Identifier: MIT
# text_embed.awk - text files as C strings, every line kept.
#
#   awk -v part=declare|define -v name=pgsql_schema_text \
#       -f c_string.awk -f text_embed.awk FILE... /dev/null
#   awk -v part=declare|define -v prefix=cli_help_ \
#       -f c_string.awk -f text_embed.awk FILE... /dev/null
#
# With `name` all files become one string, in the order given; an empty one if
# there are no files. With `prefix` each file becomes a string of its own, named
# after the file: cli_help_run for run.txt.
# POSIX awk only; the same bytes under mawk, gawk and the original awk.

function begin(object)
{
    if (part == "declare") {
        print "extern const char " object "[];"
    } else {
        print ""
        print "const char " object "[] ="
    }
    is_open = 1
}

function end()
{
    if (is_open && part == "define")
        print "    \"\";"
    is_open = 0
}

BEGIN {
    c_preamble(part, name != "" ? "the files that make up " name : "text files")
    if (name != "")
        begin(name)
}

FNR == 1 && name == "" {
    end()
    begin(prefix c_name(FILENAME))
}

part == "define" {
    sub(/\r$/, "")
    print c_line($0)
}

END {
    end()
}
