/* SPDX-License-Identifier: MIT */
/* mysql_server.c - what a connection sets when it opens, and what kind of server is at the
 * other end: sql/install.sql. What follows from that is the steps' business. */
#include "mysql_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_connection.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

#define PREFIX_MAX 24 /* "dblock:", twelve digits, ":" are 20 */

/* "10.11.19-MariaDB-1" or "5.5.5-10.11.19-MariaDB" or "8.0.36" as 101119, 80036. */
void mysql_server_read_version(struct dblock_connection *connection)
{
    const char *text = mysql_get_server_info(connection->mysql);
    unsigned int major = 0, minor = 0, patch = 0;

    connection->is_mariadb = strstr(text, "MariaDB") != NULL;
    if (connection->is_mariadb && strncmp(text, "5.5.5-", 6) == 0)
        text += 6;
    (void)sscanf(text, "%u.%u.%u", &major, &minor, &patch);
    connection->version = major * 10000 + minor * 100 + patch;
    connection->has_nowait = connection->is_mariadb || connection->version >= 80000;
}

int mysql_server_has_one_lock(const struct dblock_connection *connection)
{
    return connection->version < (connection->is_mariadb ? 100002u : 50705u);
}

/* Several writable nodes: locks of rows and named locks exclude nobody there. */
static unsigned int read_cluster(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    struct mysql_text_answer facts;
    unsigned int code;

    code = mysql_text_run(connection,
        connection->is_mariadb ? mysql_sql_has_wsrep : mysql_sql_is_single_primary, call, 1, 0,
        &facts);
    if (code == 1193) /* unknown variable: no such thing in this server */
        return 0;
    if (code != 0)
        return code;
    if (connection->is_mariadb && facts.values[0][0] == '1') {
        connection->is_multi_writer = 1;
        dblock_text_copy(connection->multi_writer, sizeof connection->multi_writer, "Galera");
        if (connection->is_lent) /* each step sets it for itself */
            return 0;
        return mysql_text_run(connection, mysql_sql_sync_reads, call, 1, 0, NULL);
    }
    if (!connection->is_mariadb && facts.values[0][0] == '0' && facts.values[1][0] == '1') {
        connection->is_multi_writer = 1;
        dblock_text_copy(
            connection->multi_writer, sizeof connection->multi_writer, "Group Replication");
    }
    return 0;
}

static unsigned int set_session(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    const struct dblock_target *target = connection->target;
    int is_holding =
        connection->role == DBLOCK_ROLE_ROW || connection->role == DBLOCK_ROLE_ADVISORY;
    int is_waiting = connection->role == DBLOCK_ROLE_LINE;
    unsigned int idle_seconds = is_holding ? mysql_count_seconds(target->ttl_us)
        : is_waiting                       ? MYSQL_WATCHED_SECONDS
                                           : MYSQL_IDLE_SECONDS;
    struct mysql_literal settings[4] = { { MYSQL_LITERAL_NUMBER, 1, NULL, 0 },
        { MYSQL_LITERAL_NUMBER, mysql_count_seconds(target->io_timeout_us), NULL, 0 },
        { MYSQL_LITERAL_NUMBER, idle_seconds, NULL, 0 },
        { MYSQL_LITERAL_SECONDS, is_holding || is_waiting ? 0 : target->io_timeout_us, NULL, 0 } };
    char sql[1200];

    /* MySQL 8: a try does not wait, and a wait has its own limit (row.sql, row_wait). */
    if (connection->role == DBLOCK_ROLE_ROW && !connection->is_mariadb &&
        connection->version >= 80000)
        settings[0].number = MYSQL_LONG_WAIT_S;
    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_session_settings, settings, 4)) {
        mysql_note_error(connection, 2020, "HY000", "settings that are too long", 0);
        return connection->error_code;
    }
    return mysql_text_run(connection, sql, call, 1, 0, NULL);
}

/* Whether the server's named locks belong to this very connection. Not if something in between
 * lends connections of its own, or an older server gives up one lock for the next. */
static int has_locks_of_its_own(const struct dblock_connection *connection, const char *own_id)
{
    return (uint32_t)strtoull(own_id, NULL, 10) == (uint32_t)connection->server_id &&
        !mysql_server_has_one_lock(connection);
}

unsigned int mysql_server_look(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer)
{
    struct mysql_text_answer facts;
    unsigned int code = mysql_text_run(connection, mysql_sql_session_facts, call, 1, 0, &facts);

    if (code == 0)
        code = read_cluster(connection, call);
    if (code != 0)
        return code;
    atomic_store(&((struct dblock_target *)connection->target)->is_multi_writer,
        connection->is_multi_writer);
    if (strlen(facts.values[3]) > PREFIX_MAX) {
        mysql_note_error(
            connection, 2027, "HY000", "the server made nonsense of what it was asked", 0);
        return connection->error_code;
    }
    connection->is_read_only = facts.values[2][0] == '1';
    mysql_in_text(connection, MYSQL_B_PREFIX, facts.values[3]);
    connection->lock_of_size = 0;
    connection->has_locks = connection->has_line = has_locks_of_its_own(connection, facts.values[4]);
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->now_us = mysql_bound(strtoll(facts.values[0], NULL, 10));
    return 0;
}

unsigned int mysql_server_greet(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer)
{
    unsigned int code;

    mysql_server_read_version(connection);
    code = set_session(connection, call);
    if (code == 0)
        code = mysql_server_look(connection, call, answer);
    if (code == 0 && connection->role == DBLOCK_ROLE_ROW)
        code = mysql_text_run(connection, "SET autocommit = 0", call, 1, 0, NULL);
    return code;
}
