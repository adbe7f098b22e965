/* SPDX-License-Identifier: MIT */
/* pgsql_statement.h - a message: one or more statements that go to the server
 * together and come back together, one round trip and one transaction.
 *
 *     struct pgsql_message message;
 *
 *     pgsql_message_init(&message, connection, call, "take lease", name, PGSQL_WRITES);
 *     pgsql_message_add(&message, STATEMENT_LEASE_GATE, &gate_parameters);
 *     pgsql_message_add(&message, STATEMENT_LEASE_TAKE, &take_parameters);
 *     status = pgsql_message_run(&message, reterr);
 *     if (status == DBLOCK_OK)
 *         ... PQgetvalue(message.results[0], ...)
 *     return pgsql_message_fini(&message, status, answer);
 *
 * A message of one statement: pgsql_message_ask() in place of add and run.
 *
 * A statement is prepared in the message that first uses it. Behind a pooler none
 * is, and each message becomes a transaction that brings its settings along. */
#ifndef DBLK_PGSQL_STATEMENT_H
#define DBLK_PGSQL_STATEMENT_H

#include "pgsql_connection.h"
#include "pgsql_value.h"

enum { /* flags of a message */
    PGSQL_READS = 0,          /* without effect: a lost answer is not uncertain */
    PGSQL_WRITES = 1 << 0,    /* or locks, until the server sees the end of the connection */
    PGSQL_WAITS = 1 << 1,     /* heeds call->cancel_fd by a cancel request */
    PGSQL_CONNECTS = 1 << 2,  /* heeds call->cancel_fd by giving up the connection */
    PGSQL_OWN_BOUNDS = 1 << 3 /* BEGIN and COMMIT are the caller's */
};

enum { PGSQL_ENTRIES_MAX = 16, PGSQL_RESULTS_MAX = 6 };

struct pgsql_entry {
    int statement;
    int is_prepare;
    int is_wanted; /* its result is one of results */
};

struct pgsql_message {
    struct dblock_connection *connection;
    const struct dblock_call *call;
    const char *action; /* "take lease", for messages */
    const char *name;   /* of the lock, or NULL */
    int flags;
    int is_kept_out;    /* the connection is lent, and was not to be had */
    int is_watched;     /* a limit stands without our doing: libpq may wait by itself */
    int waits_in_read;  /* and does so in the read, without a poll() before */
    int is_alone;       /* one statement outside of libpq's pipeline mode */
    int is_bounded;     /* wrapped in a transaction here */
    uint64_t sent_us;   /* of one that waits */
    int is_cancelled;   /* cancel_fd became readable; the results are there all the same */
    int is_interrupted; /* a cancel request was sent */
    int is_refused;     /* the failure is an answer of the server, in place of the first result */
    int n_entries;
    int n_results;
    PGresult *results[PGSQL_RESULTS_MAX]; /* of what was added with pgsql_message_add() */
    struct pgsql_entry entries[PGSQL_ENTRIES_MAX];
};

void pgsql_message_init(struct pgsql_message *message, struct dblock_connection *connection,
    const struct dblock_call *call, const char *action, const char *name, int flags);
/* `parameters` NULL: none. They are copied into libpq's buffer. */
void pgsql_message_add(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters);
/* BEGIN, with the settings that a pooled connection needs; their results are not kept. */
void pgsql_message_add_begin(struct pgsql_message *message);
/* The same, without a result to keep. */
void pgsql_message_add_quiet(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters);
/* For the end of a message that leaves its transaction open: the server keeps the snapshot of the
 * last statement until another one takes its place, and that of a lock that is held for hours
 * would keep vacuum and CREATE INDEX CONCURRENTLY waiting. */
void pgsql_message_add_nothing(struct pgsql_message *message);
/* DBLOCK_OK: all statements succeeded, and their transaction is committed (unless the caller keeps
 * it open). PGSQL_CONFLICT, or a failure: no effect, or E_UNCERTAIN. */
dblock_status pgsql_message_run(struct pgsql_message *message, struct dblock_error *reterr);
/* Adds the only statement, and runs. The same bytes to the server; but a pipeline of libpq's, with
 * a result more and an entry in its queue, costs about a tenth of what the client does for one. */
dblock_status pgsql_message_ask(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters, struct dblock_error *reterr);
/* The two halves of pgsql_message_run(), for a message that nobody waits for: 1, or the connection
 * is broken. Until its answers have been collected the message stays where it is, and nothing else
 * is sent. */
int pgsql_message_post(struct pgsql_message *message);
dblock_status pgsql_message_collect(struct pgsql_message *message, struct dblock_error *reterr);
/* Frees the results. Turns PGSQL_CONFLICT into DBLOCK_OK with DBLOCK_ANSWER_AGAIN. */
dblock_status pgsql_message_fini(
    struct pgsql_message *message, dblock_status status, struct dblock_answer *answer);

#endif
