/* SPDX-License-Identifier: MIT */
/* mysql_connection.h - one connection, and the steps of struct dblock_driver_connection. */
#ifndef DBLOCK_MYSQL_CONNECTION_H
#define DBLOCK_MYSQL_CONNECTION_H

#include <dblock/sys/driver.h>

#include <mysql.h>

#include "mysql_loan.h"
#include "mysql_statement.h"
#include "mysql_wire.h"

struct mysql_bells;
struct mysql_held;

/* The place of a connection of the role LINE (mysql_line.c). */
struct mysql_place {
    const char *letter; /* of the strategy, in the gate's name */
    char name[DBLOCK_NAME_MAX + 1];
    size_t name_size;
    int is_watched; /* the server ends the connection when it idles */
    char met[40];   /* the owner whose bell was found unlocked */
    unsigned n_met; /* so often was that grant met since */
};

/* Idle seconds after which the server ends the connection of somebody who has a place, and
 * one that is used from time to time. */
#define MYSQL_WATCHED_SECONDS 2
#define MYSQL_IDLE_SECONDS 28800

struct dblock_connection {
    MYSQL *mysql;
    struct mysql_wire wire;
    const struct dblock_target *target;
    int role;    /* DBLOCK_ROLE_* */
    int is_lent; /* it is the application's, and ours in a step only (mysql_loan.h) */
    struct mysql_loan loan;  /* of such a step */
    struct mysql_held *held; /* lent: the advisory locks that it has for us */
    char database[256];      /* lent: that of the tables; "" not known yet */
    int is_dead; /* the server is not heard on this any more */
    uint64_t used_us; /* when something was last sent or waited for (CLOCK_BOOTTIME) */

    /* What kind of server it is; read once. */
    int is_mariadb;
    unsigned int version;   /* 101119 is 10.11.19 */
    int has_nowait;         /* MariaDB, MySQL 8 */
    int is_multi_writer;    /* Galera, Group Replication with several primaries */
    int is_read_only;       /* @@read_only */
    char multi_writer[32];  /* its name, for messages */
    unsigned long server_id; /* the server's number of this connection */
    int has_locks; /* named locks are this connection's own, and it can have several */
    int has_line;  /* and we may use them: it can ring, and be woken */

    char lock_of[DBLOCK_NAME_MAX + 1]; /* advisory: of which name MYSQL_B_LOCK is made */
    size_t lock_of_size;               /* 0: none */

    int has_transaction;  /* row: one is open and its lock is held */
    int is_answer_due;    /* something was sent whose answer nobody has read */
    struct mysql_place place;  /* line */
    struct mysql_bells *bells; /* NULL: none yet */

    /* The last error, copied where it occurred. */
    unsigned int error_code;
    int is_effect_possible; /* it was sent, it writes, and no answer came */
    char error_sqlstate[8];
    char error_text[400];

    struct mysql_board in;
    struct mysql_board out;
    MYSQL_STMT *statements[MYSQL_N_STATEMENTS]; /* NULL: not prepared yet */
};

dblock_status mysql_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr);
void mysql_connection_close(struct dblock_connection *connection, int how);
int mysql_connection_is_alive(const struct dblock_connection *connection);
/* -1 also while an answer is due, which makes the socket readable. */
int mysql_connection_fd(const struct dblock_connection *connection);
dblock_status mysql_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);

/* Connects without settings and facts: for KILL, for DDL. */
dblock_status mysql_connect(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_error *reterr);

/* Notes an error of the connection itself (code, SQLSTATE, text) and whether it is dead. */
void mysql_note_error(struct dblock_connection *connection, unsigned int code,
    const char *sqlstate, const char *text, int is_effect_possible);
int mysql_socket(const struct dblock_connection *connection);
/* Before anything is sent: reads an answer that is due. 0, or 2006 with the error noted, if the server has ended the
 * connection meanwhile or the deadline has come. So "not sent" is certain. */
unsigned int mysql_check_sendable(
    struct dblock_connection *connection, const struct dblock_call *call);
/* Whole seconds, rounded up, at least one: for those who count no finer. */
unsigned int mysql_count_seconds(uint64_t duration_us);
/* Whether the last answer said that a transaction is open. */
int mysql_is_in_transaction(const struct dblock_connection *connection);

#endif
