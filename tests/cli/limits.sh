#!/bin/bash
# SPDX-License-Identifier: MIT
# limits.sh - limits that a role, an option file or an administrator has set for sessions, all
# shorter than what is held and waited for here. PITFALL(D6): the server ends idle sessions.
# PITFALL(D10): it ends transactions that do nothing. And settings that shape what a COMMIT does,
# which rows come, and what the time is. Dblock sets what it needs for itself. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"

# All are held for longer than any of the limits, and waited for as long.
short_limits()
{
    local strategy
    local -A holders=()
    for strategy in lease insert row advisory; do
        rm -f "$folder/$strategy.ready" "$folder/$strategy.over"
        # shellcheck disable=SC2016 # for the shell inside
        start env part=$strategy "$DBLOCK" run -S $strategy "$name-$strategy" -c \
            `# sleeps because it is to be held beyond the limits` \
            'echo > "$HOME/$part.ready"; sleep 1.6; echo > "$HOME/$part.over"'
        holders[$strategy]=$!
    done
    for strategy in lease insert row advisory; do
        on="$database $strategy"
        until_true "$on: COMMAND runs" exists "$folder/$strategy.ready" || continue
        # shellcheck disable=SC2016
        exits 0 "$on: waits, and is granted when he has ended" \
            env part=$strategy "$DBLOCK" run -w 9 -S $strategy "$name-$strategy" -c \
            'test -s "$HOME/$part.over"'
        ended "${holders[$strategy]}" 0 "$on: is not lost by being idle"
    done
}

with_limits()
{
    case $database in
    pgsql)
        case $DBLOCK_URL in *\?*) and='&' ;; *) and='?' ;; esac
        options=
        for limit in idle_in_transaction_session_timeout=700 statement_timeout=500 lock_timeout=100; do
            options="$options%20-c%20${limit/=/%3D}"
        done
        DBLOCK_URL="$DBLOCK_URL${and}options=$options" short_limits
        ;;
    mysql)
        printf '[client]\ninit-command="SET SESSION %s, %s, %s %s"\n' \
            'wait_timeout = 1, lock_wait_timeout = 1, timestamp = 2000000000' \
            'completion_type = 2, sql_select_limit = 0, sql_safe_updates = 1' \
            'max_join_size = 1 /*!50720 , max_execution_time = 1 */' \
            '/*M!100300 , idle_transaction_timeout = 1, idle_readonly_transaction_timeout = 1 */' \
            > "$HOME/.my.cnf"
        short_limits
        rm "$HOME/.my.cnf"
        ;;
    esac
}

for_each_database with_limits
finish
