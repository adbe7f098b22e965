/* SPDX-License-Identifier: MIT */
/* mysql_text.h - statements sent as text, waited for to the millisecond.
 *
 * For what cannot be prepared or must be cancelled: settings, COMMIT, KILL, the waits in
 * the server's queues. Values become literals (x'..' or decimal numbers), never quoted
 * text. */
#ifndef DBLOCK_MYSQL_TEXT_H
#define DBLOCK_MYSQL_TEXT_H

#include <dblock/sys/driver.h>

struct dblock_connection;

enum mysql_literal_kind { MYSQL_LITERAL_NUMBER, MYSQL_LITERAL_BYTES, MYSQL_LITERAL_SECONDS };

struct mysql_literal {
    enum mysql_literal_kind kind;
    uint64_t number;  /* NUMBER; SECONDS: microseconds, written as 1.500000 */
    const void *data; /* BYTES; NULL is NULL */
    size_t size;
};

struct mysql_text_answer {
    int has_row;
    int n_columns;
    char values[6][128]; /* of the first row, cut; "" for NULL */
    int is_null[6];
};

/* The statement with each "?" replaced by its literal. 0 if it does not fit. */
int mysql_text_fill(char *target, size_t size, const char *sql,
    const struct mysql_literal *literals, size_t n_literals);

/* Sends and waits. 0, or the native code; with `heed_cancel` also MYSQL_TEXT_CANCELLED or
 * MYSQL_TEXT_DEADLINE: then the answer is still to come, and the caller interrupts or
 * closes. (Without, a deadline is a lost answer and ends the connection.) `answer` NULL:
 * not wanted. */
#define MYSQL_TEXT_CANCELLED 90001u
#define MYSQL_TEXT_DEADLINE 90002u
unsigned int mysql_text_run(struct dblock_connection *connection, const char *sql,
    const struct dblock_call *call, int heed_cancel, int is_write,
    struct mysql_text_answer *answer);
/* If it cannot be sent, as the time was over, or fails, the transaction ends with the connection:
 * it is dead. */
void mysql_text_roll_back(struct dblock_connection *connection, const struct dblock_call *call);
/* Sends, and leaves the answer for the next use of the connection: mysql_check_sendable()
 * then collects it. 0 or the native code. */
unsigned int mysql_text_send(
    struct dblock_connection *connection, const char *sql, const struct dblock_call *call);
unsigned int mysql_text_collect(
    struct dblock_connection *connection, const struct dblock_call *call);
/* After CANCELLED (then `is_cancelled`) or DEADLINE: interrupts the statement, which only waits,
 * by KILL QUERY over a connection of its own, and reads its answer: as mysql_text_run(). If that
 * is not to be had within the limit of the call, of which little may be left, or at once for who
 * was cancelled, the connection is dead: the server ends what waits there by its own limit. */
unsigned int mysql_text_interrupt(struct dblock_connection *connection,
    const struct dblock_call *whole, int is_cancelled, struct mysql_text_answer *answer);

#endif
