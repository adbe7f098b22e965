/* SPDX-License-Identifier: MIT */
/* mysql_server.h - the first words with a server. */
#ifndef DBLOCK_MYSQL_SERVER_H
#define DBLOCK_MYSQL_SERVER_H

#include <dblock/sys/driver.h>

struct dblock_connection;

/* Seconds that one statement waits in a queue of the server at most: whoever has to wait longer
 * stands at its end again. Also the limit of a lock of a row on MySQL 8's connections for rows: a try
 * does not wait there, and a wait has its own limit. */
enum { MYSQL_LONG_WAIT_S = 100000 };

/* Settings of the role, facts into the connection, the clock into `answer`. 0, a native
 * code, or one of mysql_text_run()'s own. No database: the advisory prefix is empty. */
unsigned int mysql_server_greet(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer);

/* Its parts, for a connection of the application: what the handshake told, and what is asked of the
 * server, without a change of the session. */
void mysql_server_read_version(struct dblock_connection *connection);
unsigned int mysql_server_look(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer);

/* Too old: a second GET_LOCK of a connection gives up the first. */
int mysql_server_has_one_lock(const struct dblock_connection *connection);

#endif
