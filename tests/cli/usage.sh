#!/bin/bash
# SPDX-License-Identifier: MIT
# usage.sh - help, version, and every way to use the command wrongly. Needs no
# database. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

exits 64 'no command' "$DBLOCK"
exits 0 'help' "$DBLOCK" --help
like "$out" '^  run ' 'help lists the commands'
unlike "$out" 'watch|metrics|elect' 'and none that is not built'
exits 0 'help command' "$DBLOCK" help
exits 0 'version' "$DBLOCK" -V
like "$out" '^dblock [0-9]+\.[0-9]+\.[0-9]+$' 'version is one line'
for command in run acquire extend release show list break init schema bench doctor; do
    exits 0 "$command --help" "$DBLOCK" "$command" --help
    like "$out" "^Usage: dblock $command" "$command --help says how"
    help=$out
    exits 0 "help $command" "$DBLOCK" help "$command"
    is "$out" "$help" "help $command is the same"
done
exits 0 'help exit' "$DBLOCK" help exit
like "$out" '^   75  busy' 'help exit has the table'
exits 64 'help of nothing' "$DBLOCK" help frobnicate
like "$err" 'no help on "frobnicate"; topics: run acquire .* schema bench doctor help exit$' 'lists the topics'
for page in "$here"/src/man/dblock.1 "$here"/src/cli/help/run.txt; do
    crontab=$(grep -E '^ *[0-9*]+( [0-9*]+){4} ' "$page")
    like "$crontab" '/dblock run ' "the crontab of ${page##*/} needs no PATH"
    unlike "$crontab" '.{79}' 'and fits a terminal'
done
exits 64 'an unknown command' "$DBLOCK" frobnicate
like "$err" '^dblock: there is no command "frobnicate"; see' 'is named'
for word in lst:list rnu:run doctr:doctor schma:schema acquier:acquire; do
    exits 64 "${word%:*}" "$DBLOCK" "${word%:*}"
    like "$err" "there is no command \"${word%:*}\"; did you mean ${word#*:}[?]" 'is near one'
done
exits 64 'an option before the command' "$DBLOCK" -n run x true
for command in watch metrics elect; do
    exits 64 "$command" "$DBLOCK" "$command"
    like "$err" 'not in this version' "$command is said to come later"
done

for later in -s '-p 3' '--once daily' --shared '--permits=3' '--once=daily'; do
    # shellcheck disable=SC2086 # two words are meant
    exits 64 "run $later" "$DBLOCK" run $later x true
    like "$err" "option ${later%%[ =]*} is not in this version" "run $later is said to come later"
done
exits 64 'init --history' "$DBLOCK" init --history
exits 64 'schema --guard' "$DBLOCK" schema --guard sqlite

exits 64 'run without NAME' "$DBLOCK" run
exits 64 'run without COMMAND' "$DBLOCK" run x
exits 64 'run -- without COMMAND' "$DBLOCK" run x --
exits 64 'run of an empty COMMAND' "$DBLOCK" run x ''
like "$err" 'the name of COMMAND is empty' 'is said'
exits 64 'an option after NAME' "$DBLOCK" run x -n true
exits 64 '-c without text' "$DBLOCK" run x -c
exits 64 '-c with two texts' "$DBLOCK" run x -c a b
exits 64 'an unknown option' "$DBLOCK" run --frob x true
like "$err" 'unknown option --frob; see' 'is named'
exits 64 'a mistyped option' "$DBLOCK" run --exclusvie x true
like "$err" 'unknown option --exclusvie; did you mean --exclusive[?]' 'is near one'
exits 64 'an option of another command' "$DBLOCK" show --limit=3 x
like "$err" 'unknown option --limit; see' 'is near none of this one'
exits 64 'a prefix of two' "$DBLOCK" run --ex x true
like "$err" 'option --ex is ambiguous: --exclusive, --export-url; see' 'has both'
exits 64 'a prefix of two, with a value' "$DBLOCK" run --s=secretword x true
unlike "$err" secretword 'has the option alone'
exits 64 'an unknown letter' "$DBLOCK" run -nZ x true
like "$err" 'unknown option -Z' 'is named'
exits 64 'a missing value' "$DBLOCK" run -w
exits 64 'a missing value of a long option' "$DBLOCK" run --wait
exits 64 'a value too many' "$DBLOCK" run --quiet=yes x true
exits 64 'a word too many' "$DBLOCK" show x y
exits 64 'a password in a word too many' "$DBLOCK" show x postgresql://u:secretword@h/d
unlike "$err" secretword 'is not repeated'
exits 64 'a password in an unknown option' "$DBLOCK" show --databse=postgresql://u:secretword@h/d x
unlike "$err" secretword 'is not repeated either'

for duration in nan inf -1 +1 '' ' 1' 1e3 1e30s 0x10 1.s .5 5x 5S '1 s' 99999999999999999999 4000d 1.5.5 \
    0.0001 1.0005 0.5ms 1.00000000001d; do
    exits 64 "duration \"$duration\"" "$DBLOCK" run "-w$duration" x true
done
exits 64 '-t of nothing' "$DBLOCK" run -t 0 x true
exits 64 '-t of less than 20 ms' "$DBLOCK" run -t 0.019 x true
like "$err" '-t "0.019" is not 20 ms or more' 'is said in words of the command'
exits 64 '-t finer than a millisecond' "$DBLOCK" run -t 0.5005 x true
like "$err" '-t "0.5005" is not a duration in whole milliseconds' 'is not rounded'
for both in '-n -w 2' '-w 2 -n' '-nw2' '--wait=2 --nonblock' '-n -w 0'; do
    # shellcheck disable=SC2086 # several words are meant
    exits 64 "run $both" "$DBLOCK" run $both x true
    like "$err" '-n and -w exclude each other' 'both are named'
    # shellcheck disable=SC2086
    exits 64 "acquire $both" "$DBLOCK" acquire -t 10 $both x
done
for status in -1 256 x ''; do
    exits 64 "-E \"$status\"" "$DBLOCK" run -E "$status" x true
done
exits 64 'an unknown strategy' "$DBLOCK" run -S mutex x true
exits 64 'an unknown signal' "$DBLOCK" run --signal NONE x true
exits 64 'an unknown action' "$DBLOCK" run --on-lost pray x true
exits 64 '-k above half of the ttl' "$DBLOCK" run -t 10 -k 6 x true
exits 64 '-t for a row lock' "$DBLOCK" run -S row -t 10 x true
exits 64 '--at-least for an advisory lock' "$DBLOCK" run -S advisory --at-least 10 x true
exits 64 '--id for a lease' "$DBLOCK" run --id 7 x true
exits 64 '--id that is no number' "$DBLOCK" run -S advisory --id seven x true
exits 64 'a label that is too long' "$DBLOCK" run -l "$(printf '%0200d' 1)" x true
exits 64 'acquire without -t' "$DBLOCK" acquire x
exits 64 'acquire of an advisory lock' "$DBLOCK" acquire -t 10 -S advisory x
exits 64 'acquire for no process' "$DBLOCK" acquire -t 10 -P 0 x
exits 64 'extend without -t' "$DBLOCK" extend grant
exits 64 'list: -0 and --json' "$DBLOCK" list -0 --json
exits 64 'init: --dry-run and --json' "$DBLOCK" init --dry-run --json
exits 64 'run: -n and -f' "$DBLOCK" run -n -f x true
exits 64 'release without GRANT' "$DBLOCK" release
exits 64 'break -T of nothing' "$DBLOCK" break -T x x
exits 64 'list -l 0' "$DBLOCK" list -l 0
exits 64 'schema of an unknown database' "$DBLOCK" schema oracle

exits 127 'a command that is not there' "$DBLOCK" run -d sqlite:x x -- no-such-command
exits 127 'a path that is not there' "$DBLOCK" run -d sqlite:x x /no/such/command
exits 126 'a folder' "$DBLOCK" run -d sqlite:x x /
: > "$folder/text"
exits 126 'a file that may not be run' "$DBLOCK" run -d sqlite:x x "$folder/text"
[ ! -e x ] && pass 'these are found before the database is opened'
finish
