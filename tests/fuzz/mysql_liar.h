/* SPDX-License-Identifier: MIT */
/* mysql_liar.h - packets of MySQL's protocol as a server writes them: most of them well-formed with
 * what no good server would say, some with bytes that are somewhere else. */
#ifndef DBLOCK_TEST_MYSQL_LIAR_H
#define DBLOCK_TEST_MYSQL_LIAR_H

#include "liar.h"

/* A file that a client has, and what stands in it. */
#define MYSQL_LIAR_FILE "/proc/self/status"
#define MYSQL_LIAR_FILE_TEXT "VmPeak:"

enum { MYSQL_LIAR_COLUMNS = 24 };

struct reply {
    struct script *script;
    int may_grant; /* it says what a take may be believed in */
    uint8_t sequence; /* of the packet before */
    size_t size;
    size_t begin; /* of the packet that is being written */
    uint8_t bytes[LIAR_PACKET_MAX];
};

/* What a statement is, from its text. */
struct question {
    int is_take; /* of a lease or insert */
    unsigned n_parameters;
    unsigned n_columns; /* 0: no rows */
    uint8_t is_text[MYSQL_LIAR_COLUMNS];
};

/* Of the last take. */
extern uint8_t mysql_liar_owner[16];

void mysql_liar_read_question(struct question *question, const char *sql, size_t size);

void mysql_liar_greet(struct reply *reply);
/* The answer to a login: 1 if there is nothing more to be said about it. */
int mysql_liar_admit(struct reply *reply);
void mysql_liar_agree(struct reply *reply);
/* Of a statement that is prepared. */
void mysql_liar_describe(struct reply *reply, const struct question *question, unsigned id);
/* Of a statement that is run. 0: hang up. */
int mysql_liar_answer(struct reply *reply, const struct question *question, int is_binary);

/* Spoils a few bytes, sometimes. */
int mysql_liar_send(struct reply *reply, int fd);

#endif
