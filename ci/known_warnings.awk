# SPDX-License-Identifier: MIT
# known_warnings.awk - of the warnings that an analyser prints ("FILE:LINE:COLUMN: warning: TEXT
# [CHECK]"), those that ci/analyze.supp does not know; what else it prints is left out. Exit
# status 1 if there is one.
BEGIN {
    while ((getline text < "ci/analyze.supp") > 0)
        if (text !~ /^#/ && split(text, parts, / +\| +/) >= 4) {
            ++n_known
            check[n_known] = parts[1]
            file[n_known] = parts[2]
            part[n_known] = parts[3]
        }
    close("ci/analyze.supp")
}

# A line of a file
function line_of(name, number,   text, n)
{
    while (n < number && (getline text < name) > 0)
        ++n
    close(name)
    return text
}

/: (warning|error|fatal error): / {
    split($0, place, ":")
    sub(/^\.\//, "", place[1])
    source = line_of(place[1], place[2])
    for (i = 1; i <= n_known; ++i)
        if (place[1] == file[i] && index($0, "[" check[i] "]") && index(source, part[i]))
            next
    print
    is_unknown = 1
}

/clang-tidy failed/ { print; is_unknown = 1 }

END { exit is_unknown }
