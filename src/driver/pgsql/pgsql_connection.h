/* SPDX-License-Identifier: MIT */
/* pgsql_connection.h - one connection, of libpq. */
#ifndef DBLK_PGSQL_CONNECTION_H
#define DBLK_PGSQL_CONNECTION_H

#include "pgsql_target.h"

#include <libpq-fe.h>

struct dblock_connection {
    struct dblock_target *target;
    int role;
    PGconn *pg;
    int is_broken;  /* of no use any more: lost, or out of step with the server */
    int receives;   /* enum pgsql_receives */
    int is_busy;    /* a message is under way: closing now interrupts the server */
    int is_pooled;  /* something between us and the server changes sessions: nothing lasts */
    int is_lent;    /* the application's: taken and given back for each message, see pgsql_loan.h */
    int is_direct;  /* and it leads to one session of the server */
    int server_pid; /* of it, as libpq knows that; 0 not asked yet */
    int takes_ascii_only; /* texts for people: the database's encoding has not all characters */
    int is_holding; /* row: its transaction has the lock */
    uint64_t slice_us; /* how long one wait on the server may last */
    int has_queue;     /* those who wait may call the routines that do it */

    int64_t *ids; /* advisory: the locks that this session holds */
    size_t n_ids;
    size_t room;
    char last_name[DBLOCK_NAME_MAX + 1]; /* advisory: the name that was asked for last, and */
    size_t last_size;                    /* 0: none */
    int64_t last_id;                     /* its id */

    uint64_t waited_us; /* advisory: when a wait last got its lock, the only one then; 0 never */

    struct pgsql_line *line; /* of a connection that stands in lines; NULL */
    int is_leaving;          /* it has left one, and the answer is still to be read */

    unsigned char is_prepared[N_STATEMENTS];
};

dblock_status pgsql_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr);
void pgsql_connection_close(struct dblock_connection *connection, int how);
int pgsql_connection_is_alive(const struct dblock_connection *connection);
int pgsql_connection_fd(const struct dblock_connection *connection);
dblock_status pgsql_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);

#endif
