#!/bin/bash
# SPDX-License-Identifier: MIT
# database.sh - which database is meant, who may read it where, and that a password
# is shown to nobody. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

exits 78 'no database' "$DBLOCK" run x true
like "$err" 'no database named' 'is said'
like "$err" '-d local' 'and that there is a local one'
like "$err" "give -d URL, [$]DBLOCK_URL, $folder/.config/dblock/url or /etc/dblock/url" \
    'with all places that were looked at'
XDG_CONFIG_HOME=$folder/xdg exits 78 'no database with XDG_CONFIG_HOME' "$DBLOCK" run x true
like "$err" ", $folder/xdg/dblock/url or /etc" 'names that'
HOME='' exits 78 'no database and no home' "$DBLOCK" run x true
like "$err" '[$]DBLOCK_URL, /etc/dblock/url' 'names what is left'
exits 64 'a URL of no database' "$DBLOCK" run -d redis://h x true
exits 64 'a URL that is none' "$DBLOCK" run -d nothing x true
exits 78 'a file that is no database' "$DBLOCK" run -d "sqlite:$0" x true
like "$err" 'file is not a database.*give dblock a path where there is no file' 'is said'

# The order: option, environment, the user's file.
"$DBLOCK" init -q -d "sqlite:$folder/option.db"
"$DBLOCK" init -q -d "sqlite:$folder/environment.db"
"$DBLOCK" init -q -d "sqlite:$folder/user.db"
mkdir -p "$folder/.config/dblock"
echo "sqlite:$folder/user.db" > "$folder/.config/dblock/url"
where()
{
    local base
    for base in option environment user; do
        if "$DBLOCK" show -q -d "sqlite:$folder/$base.db" x; then
            echo "$base"
        fi
    done
}
export -f where
export folder
is "$("$DBLOCK" run x -- bash -c where)" user "the user's file"
is "$(XDG_CONFIG_HOME=$folder/.config "$DBLOCK" run x -- bash -c where)" user '$XDG_CONFIG_HOME'
is "$(DBLOCK_URL=sqlite:$folder/environment.db "$DBLOCK" run x -- bash -c where)" environment \
    'the environment goes before it'
is "$(DBLOCK_URL=sqlite:$folder/environment.db "$DBLOCK" run -d "sqlite:$folder/option.db" x -- \
    bash -c where)" option 'the option goes before both'

# @FILE
printf '  sqlite:%s  \nmore\n' "$folder/option.db" > "$folder/url"
is "$("$DBLOCK" run -d "@$folder/url" x -- bash -c where)" option '@FILE'
is "$(DBLOCK_URL="@$folder/url" "$DBLOCK" run x -- bash -c where)" option '@FILE in the environment'
exits 78 '@FILE that is not there' "$DBLOCK" run -d "@$folder/none" x true
: > "$folder/empty"
exits 78 '@FILE that is empty' "$DBLOCK" run -d "@$folder/empty" x true
exits 78 '@FILE that has no end' timeout 20 "$DBLOCK" run -d @/dev/zero x true
like "$err" '/dev/zero: its first line is longer than 64 KiB' 'is not read to it'
exits 78 '@FILE that is a folder' "$DBLOCK" run -d "@$folder" x true
head -c 70000 /dev/zero | tr '\0' x > "$folder/wide"
exits 78 '@FILE with a wide first line' "$DBLOCK" run -d "@$folder/wide" x true
echo "@$folder/url" > "$folder/loop"
exits 78 '@FILE that names another' "$DBLOCK" run -d "@$folder/loop" x true
exits 64 '@ alone' "$DBLOCK" list -d @
like "$err" '-d: there is no name of a file after the @' 'is said'
DBLOCK_URL=@ exits 78 '@ alone in the environment' "$DBLOCK" list
like "$err" '[$]DBLOCK_URL: there is no name' 'is said to stand there'

# Where a URL that is wrong stands.
echo '# the locks' > "$folder/comment"
exits 78 '@FILE that begins with a comment' "$DBLOCK" run -d "@$folder/comment" x true
like "$err" "^dblock: $folder/comment: the URL does not begin with .*; not run" 'is named'
DBLOCK_URL=@$folder/comment exits 78 'the same in the environment' "$DBLOCK" list
like "$err" "^dblock: $folder/comment: the URL" 'is named too'
cp "$folder/comment" "$folder/.config/dblock/url"
exits 78 "the user's file that begins with a comment" "$DBLOCK" list
like "$err" "^dblock: $folder/.config/dblock/url: the URL" 'is named too'
for url in nothing 'sqlite:' 'sqlite:x?y=1' oracle:x; do
    DBLOCK_URL=$url exits 78 "\$DBLOCK_URL is $url" "$DBLOCK" list
    like "$err" '^dblock: [$]DBLOCK_URL: ' 'is said to stand there'
done
DBLOCK_URL=oracle:x exits 78 'schema of what is wrong there' "$DBLOCK" schema
like "$err" '^dblock: [$]DBLOCK_URL: ' 'is said to stand there'
exits 64 '-d itself' "$DBLOCK" list -d nothing
like "$err" '^dblock: the URL' 'needs no name'

echo 'postgresql://u:secretword@127.0.0.1:1/d' > "$folder/open"
chmod 644 "$folder/open"
exits 78 'a password that everybody can read' "$DBLOCK" run -d "@$folder/open" x true
like "$err" 'chmod o-r' 'the cure is said'
unlike "$err" secretword 'the password is not'
echo 'postgresql://127.0.0.1:1/d?password=secretword' > "$folder/open"
exits 78 'the same as an option of the URL' "$DBLOCK" run -d "@$folder/open" x true

# local; root's own would be a file of this machine, so as another user then
rm -r "$folder/.config"
as_user=
if [ "$(id -u)" = 0 ]; then
    as_user='setpriv --reuid=65534 --regid=65534 --clear-groups'
    chmod 711 "$folder"
fi
mkdir "$folder/user"
[ -z "$as_user" ] || chown 65534:65534 "$folder/user"
# shellcheck disable=SC2086 # several words are meant
if ! $as_user "$DBLOCK" -V > /dev/null 2>&1; then
    echo '# SKIP local: no other user than root can run the command here'
else
    for command in 'list 0' 'show 1 x' 'show 0 -w 1 x' 'break 1 -y x' 'list 0 --json' 'schema 0' \
        'release 76 dblock1:lease:00000000000000000000000000000000:1:x' 'init 0 --dry-run'; do
        read -r word status rest <<< "$command"
        HOME=$folder/user exits "$status" "$word $rest: nothing is there yet" \
            $as_user "$DBLOCK" "$word" -d local $rest
        case $command in
        schema* | init*) ;;
        *)
            like "$err" "no locks: $folder/user/.local/state/dblock/local.db does not exist yet" \
                'is said'
            ;;
        esac
        [ "$rest" != --json ] || valid_json 'list of nothing'
        is "$(ls -A "$folder/user")" '' 'and nothing is made'
    done
    HOME=$folder/user exits 0 'init of local' $as_user "$DBLOCK" init -d local
    like "$err" 'the tables are in .*local.db now' 'is said to make it'
    HOME=$folder/user exits 0 'list of local' $as_user "$DBLOCK" list -d local
    is "$err" '' 'has nothing to say'
    rm -r "$folder/user/.local"
    HOME=$folder/user exits 0 'local' $as_user "$DBLOCK" run -d local x true
    check 'is below the home folder' exists "$folder/user/.local/state/dblock/local.db"
    is "$(stat -c %a "$folder/user/.local/state/dblock")" 700 'in a folder of the user alone'
    HOME=$folder/user XDG_STATE_HOME=$folder/user/state exits 0 'local with XDG_STATE_HOME' \
        $as_user "$DBLOCK" run -d local x true
    check 'is below that' exists "$folder/user/state/dblock/local.db"
    is "$(HOME=$folder/user DBLOCK_URL=local $as_user "$DBLOCK" run x -- \
        "$DBLOCK" show -d local x | grep -c lease)" 1 'local in the environment'
    mkdir "$folder/closed"
    chmod 555 "$folder/closed"
    HOME=$folder/closed exits 77 'local in a home folder that is not ours' \
        $as_user "$DBLOCK" run -d local x true
    like "$err" "cannot make the folder $folder/closed/.local: Permission denied; not run" 'is said'
    HOME='' exits 78 'local without a home folder' $as_user "$DBLOCK" run -d local x true
fi

# What COMMAND sees.
url=sqlite:$folder/option.db
is "$("$DBLOCK" run -d "$url" x -c 'echo "${DBLOCK_URL-none}"')" none 'a URL of -d is not exported'
is "$(DBLOCK_URL=$url "$DBLOCK" run -d "$url" x -c 'echo "${DBLOCK_URL-none}"')" none \
    'nor one that -d has overruled'
is "$("$DBLOCK" run --export-url -d "@$folder/url" x -c 'echo "${DBLOCK_URL-none}"')" "$url" \
    '--export-url: what was resolved'
is "$(DBLOCK_URL=$url "$DBLOCK" run x -c 'echo "${DBLOCK_URL-none}"')" "$url" \
    'one of the environment stays'

# Passwords: a database that does not exist is enough.
for url in postgresql://user:secretword@127.0.0.1:1/d mysql://user:secretword@127.0.0.1:1/d \
    'postgresql://user:secret@word@127.0.0.1:1/d' 'postgresql://127.0.0.1:1/d?password=secretword'; do
    for command in 'run -v -n x true' 'show x' list 'init' 'acquire -n -t 10 x' 'break -y x'; do
        # shellcheck disable=SC2086 # several words are meant
        "$DBLOCK" ${command%% *} -d "$url" ${command#* } > "$folder/out" 2>&1
        unlike "$(cat "$folder/out")" 'secret|@word' "${command%% *} -d ${url%%:*}: no message has the password"
    done
done

# ps: the arguments of a process that waits for a database.
for scheme in postgresql mysql none; do
    ! has_driver $scheme || break
done
if [ $scheme = none ]; then
    echo '# SKIP the password in ps: no driver that has passwords is built'
else
    start "$DBLOCK" run -d "$scheme://user:secretword@127.0.0.1:1/d" -w 60 x -- true
    pid=$!
    hidden()
    {
        tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline" | grep -q 'run.*user:xxxxxxxxxx@'
    }
    until_true 'the password is overwritten' hidden && pass 'the password is not in ps'
    kill -TERM "$pid"
    ended "$pid" 143 'TERM ends the wait for a database'
    # what waits for the keeper of a lock has the same words as the keeper
    start "$DBLOCK" acquire -P $$ -t 10 -d "$scheme://user:secretword@127.0.0.1:1/d" -w 60 x
    pid=$!
    shown()
    {
        local child
        for child in "$1" $(cat "/proc/$1/task/$1/children"); do
            tr '\0' ' ' < "/proc/$child/cmdline"
        done
    }
    all_hidden()
    {
        [ "$(shown "$pid" | grep -o 'user:xxxxxxxxxx@' | wc -l)" = 2 ]
    }
    until_true 'acquire -P: the password is overwritten in both processes' all_hidden &&
        pass 'acquire -P: the password is not in ps'
    kill -TERM "$pid"
    ended "$pid" 143 'TERM ends that wait, too'
fi
# What libpq takes for a password without looking like one.
if has_driver postgresql; then
    for url in 'postgresql://127.0.0.1:1/d?user=u&p%61ssword=secretword' \
        'postgresql://127.0.0.1:1/d?user=u&%73slpasswor%64=secretword' \
        'postgresql://u:secretword?x@127.0.0.1:1/d'; do
        start "$DBLOCK" run -v -d "$url" -w 60 x -- true
        pid=$!
        tried()
        {
            grep -q 'trying again' "$folder/started.err"
        }
        until_true "$url: is tried" tried
        unlike "$(tr '\0' ' ' < "/proc/$pid/cmdline")" secret "$url: is not in ps"
        like "$(cat "$folder/started.err")" 'a password on the command line' "$url: is warned of"
        unlike "$(cat "$folder/started.err")" secret "$url: is in no message"
        kill -TERM "$pid"
        ended "$pid" 143 "$url: TERM ends the wait"
    done
fi

# A full disk: one of a few pages, in a name space of our own.
mkdir "$folder/disk"
cat > "$folder/fill" <<'END'
mount -t tmpfs -o size="$1" none "$HOME/disk" || exit 99
"$DBLOCK" init -q -d "sqlite:$HOME/disk/lock.db"
cat /dev/zero > "$HOME/disk/fill"
shift
exec "$DBLOCK" "$@"
END
apart='unshare -m'
[ "$(id -u)" = 0 ] || apart='unshare -rm'
# shellcheck disable=SC2086 # two words are meant
if ! $apart mount -t tmpfs none "$folder/disk" 2> /dev/null; then
    echo '# SKIP a full disk: nothing can be mounted here'
else
    url=sqlite:$folder/disk/lock.db
    # room for the tables and not for their log; not even for them
    for size in 1m 64k; do
        for words in "run -n -d $url x true" "show -d $url x" "init -d $url.new"; do
            # shellcheck disable=SC2086
            exits 69 "$size: ${words%% *}" $apart bash "$folder/fill" $size $words
            like "$(tail -n 1 <<< "$err")" 'No space left on device.*; make room on the disk' \
                "$size: is said to be full"
        done
    done
    # shellcheck disable=SC2086
    exits 69 'row, with no room for its file' $apart bash "$folder/fill" 64k \
        run -n -S row -d "$url" x true
    like "$(tail -n 1 <<< "$err")" 'No space left on device.*; make room on the disk' 'the same'
fi

# A driver that is there is not said to be missing: descriptors are. What they are needed for first
# depends on how many there are.
# A lock that cannot be watched is not had either: nothing runs under it, and it is free.
use_few()
{
    # who looks for leaks at the end needs a descriptor, too
    ASAN_OPTIONS=detect_leaks=0 bash -c "ulimit -n $n; exec 3>&-; exec '$DBLOCK' \"\$@\"" few "$@" \
        > "$folder/out" 2> "$folder/err"
    status=$?
    err=$(cat "$folder/err")
    on="$1 with $n descriptors"
    check "$on: 0 or 71, or not even a start ($status)" \
        [ $status = 0 -o $status = 71 -o $status = 127 ]
    unlike "$err" 'install the package' "$on: the package is there"
    if [ $status = 0 ]; then
        is "$err" '' "$on: all is well"
    else
        like "$err" 'Too many open files|file descriptors|Error 24' "$on: is what is said"
    fi
}
url=sqlite:$folder/option.db
for n in 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -f "$folder/ran"
    use_few run -d "$url" --report "$folder/report" x -- touch "$folder/ran"
    if [ $status = 0 ]; then
        check "$on: COMMAND has run" [ -e "$folder/ran" ]
    else
        check "$on: COMMAND has not run" [ ! -e "$folder/ran" ]
    fi
    check "$on: the lock is free" is_free -d "$url" x
    use_few acquire -P $$ -t 2 -d "$url" "kept-$n"
    if [ $status = 0 ]; then
        check "$on: is held" is_held -d "$url" "kept-$n"
        exits 0 "$on: and given back" "$DBLOCK" release -d "$url" "$(cat "$folder/out")"
    else
        check "$on: is free" is_free -d "$url" "kept-$n"
    fi
done
# On servers, where the client libraries say it in words of their own.
for url in ${DBLOCK_TEST_PGSQL:+"$DBLOCK_TEST_PGSQL"} ${DBLOCK_TEST_MYSQL_SOCKET:+"$DBLOCK_TEST_MYSQL_SOCKET"}; do
    on=${url%%:*}
    # the connection is made last: by as many as are not enough by one
    n=24
    while [ $n -gt 4 ] && DBLOCK_URL=$url \
        bash -c "ulimit -n $n; exec '$DBLOCK' run -n x true" 2> /dev/null; do
        n=$((n - 1))
    done
    DBLOCK_URL=$url exits 71 "$on: no descriptor for the connection" \
        bash -c "ulimit -n $n; exec '$DBLOCK' run -n x true"
    like "$err" 'cannot connect.*ulimit -n' "$on: says which limit"
    # a build with sanitizers does not even start
    if bash -c "ulimit -v 5000; exec '$DBLOCK' help" > /dev/null 2>&1; then
        DBLOCK_URL=$url exits 71 "$on: no memory for the driver" \
            bash -c "ulimit -v 5000; exec '$DBLOCK' run -n x true"
        like "$err" 'ulimit -v' "$on: says which limit of memory"
    fi
done

# Files that may not grow: said, and no end by SIGXFSZ, which COMMAND gets as ever.
"$DBLOCK" init -q -d "sqlite:$folder/small.db"
for s in lease insert row advisory; do
    rm -f "$folder"/small.db-* "$folder/ran"
    exits 71 "a limit of the size of files, $s" bash -c "ulimit -f 8; exec '$DBLOCK' run -S $s \
        -d 'sqlite:$folder/small.db' x touch '$folder/ran'"
    like "$err" 'File too large.*ulimit -f' 'says which'
    check 'COMMAND has not run' [ ! -e "$folder/ran" ]
done
exits 153 "COMMAND's own" "$DBLOCK" run -d "sqlite:$folder/small.db" x -- \
    bash -c 'ulimit -c 0 -f 1; head -c 9999 /dev/zero > "$0"' "$folder/large"

# A file that is mounted by itself, as `docker -v FILE:FILE` does it: its log and the side file are
# beside its other path. Its folder may be mounted.
mkdir "$folder/first" "$folder/second" "$folder/third"
: > "$folder/second/lock.db"
"$DBLOCK" init -q -d "sqlite:$folder/first/lock.db"
mounted()
{
    unshare -m bash -c 'mount --bind "$1/first/lock.db" "$1/second/lock.db" &&
        mount --bind "$1/first" "$1/third" && shift && exec "$@"' bash "$folder" "$@"
}
if mounted true 2> "$folder/why"; then
    for s in lease insert row advisory; do
        exits 78 "a mounted file, $s" mounted "$DBLOCK" run -S $s -d "sqlite:$folder/second/lock.db" x true
        like "$err" 'mounted by itself.*mount its folder' 'the way out is said'
        exits 0 "a mounted folder, $s" mounted "$DBLOCK" run -S $s -d "sqlite:$folder/third/lock.db" x true
    done
    exits 78 'init of a mounted file' mounted "$DBLOCK" init -d "sqlite:$folder/second/lock.db"
    exits 2 'doctor of a mounted file' mounted "$DBLOCK" doctor -d "sqlite:$folder/second/lock.db"
    like "$out$err" 'mount its folder' 'doctor says it too'
else
    echo "# SKIP a file that is mounted by itself: $(cat "$folder/why")"
fi

# The driver's package is named, not only its file.
if [ ! -e "$(dirname "$DBLOCK")/../lib/libdblock-pgsql.so.0" ] && ! ldconfig -p | grep -q libdblock-pgsql; then
    exits 78 'a missing driver' "$DBLOCK" run -d postgresql://h/d x true
    like "$err" 'libdblock-pgsql0' 'its package is named'
fi
finish
