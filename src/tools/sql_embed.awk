# SPDX-License-Identifier: MIT
# sql_embed.awk - named SQL statements as C strings.
#
#   awk -v part=declare|define -v prefix=pgsql_sql_ \
#       -f c_string.awk -f sql_embed.awk FILE.sql... /dev/null
#
# A statement begins with "-- name: lease_take" and goes on to the next such
# line or the end of the file. Whole-line comments and blank lines are for the
# reader of the file and are dropped; the semicolon that ends the last line is
# dropped as well, since the text is sent as one message. What remains becomes
#   const char pgsql_sql_lease_take[] = "line\n" "line\n";
# POSIX awk only; the same bytes under mawk, gawk and the original awk.

function fail(where, text)
{
    print where ": " text | "cat 1>&2"
    close("cat 1>&2")
    has_failed = 1
    exit 1
}

function end_statement(    i, last)
{
    if (name == "")
        return
    if (n_lines == 0)
        fail(begun_at, "statement \"" name "\" has no text")
    last = line[n_lines]
    sub(/[ \t]*;[ \t]*$/, "", last)
    line[n_lines] = last
    if (part == "declare") {
        print "extern const char " prefix name "[];"
    } else {
        print ""
        print "const char " prefix name "[] ="
        for (i = 1; i <= n_lines; i++)
            print c_line(line[i]) (i == n_lines ? ";" : "")
    }
    name = ""
    n_lines = 0
}

BEGIN {
    c_preamble(part, "the .sql files of this driver")
}

FNR == 1 {
    end_statement()
}

/^--[ \t]*name:/ {
    end_statement()
    name = $0
    sub(/^--[ \t]*name:[ \t]*/, "", name)
    sub(/[ \t\r]*$/, "", name)
    begun_at = FILENAME ":" FNR
    if (name !~ /^[a-z][a-z0-9_]*$/)
        fail(begun_at, "\"" name "\" is not a statement name (a-z, 0-9 and _)")
    if (name in seen)
        fail(begun_at, "statement \"" name "\" is already at " seen[name])
    seen[name] = begun_at
    next
}

/^[ \t]*--/ || /^[ \t\r]*$/ {
    next
}

{
    if (name == "")
        fail(FILENAME ":" FNR, "text before the first \"-- name:\"")
    sub(/[ \t\r]*$/, "")
    line[++n_lines] = $0
}

END {
    if (!has_failed)
        end_statement()
    if (has_failed)
        exit 1
}
