/* SPDX-License-Identifier: MIT */
/* mysql_bell.c - see mysql_bell.h. */
#include "mysql_bell.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_connection.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

/* So many bells of one connection: the server goes through them in each statement, which costs
 * as much as a hundredth of a take for four of them. Who waits for a grant without a bell naps,
 * and is woken by a drop at the cost of one round trip. */
#define BELLS_MAX 32
#define BATCH 8           /* of one statement: bell_release */
#define CLEAR_US 1000000u /* between two clearings */

struct bell {
    unsigned char owner[DBLOCK_ID_SIZE];
    int is_marked;
};

struct mysql_bells {
    struct mysql_bells *next, *previous; /* in the register */
    struct bell all[BELLS_MAX];          /* the oldest first */
    size_t n;
    atomic_size_t n_marked;
    uint64_t cleared_us;
};

struct mysql_bell_register {
    pthread_mutex_t mutex;
    struct mysql_bells *first;
};

struct mysql_bell_register *mysql_bell_register_new(void)
{
    struct mysql_bell_register *all = calloc(1, sizeof *all);

    if (all != NULL && pthread_mutex_init(&all->mutex, NULL) != 0) {
        free(all);
        all = NULL;
    }
    return all;
}

void mysql_bell_register_free(struct mysql_bell_register *all)
{
    if (all == NULL)
        return;
    (void)pthread_mutex_destroy(&all->mutex);
    free(all);
}

static struct mysql_bell_register *lock_register(const struct dblock_connection *connection)
{
    struct mysql_bell_register *all = connection->target->bells;

    (void)pthread_mutex_lock(&all->mutex);
    return all;
}

static void unlock_register(struct mysql_bell_register *all)
{
    (void)pthread_mutex_unlock(&all->mutex);
}

void mysql_bell_name(
    const struct dblock_connection *connection, const char *owner, char name[MYSQL_BELL_SIZE])
{
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    size_t size = prefix->size < 32 ? prefix->size : 32;

    memcpy(name, prefix->data, size);
    name[size++] = 'b';
    dblock_text_copy(name + size, MYSQL_BELL_SIZE - size, owner);
}

static void put_bell(
    struct dblock_connection *connection, const unsigned char *owner, int can_ring)
{
    char text[40];
    char name[MYSQL_BELL_SIZE];

    mysql_in_number(connection, MYSQL_N_RINGS, can_ring);
    if (!can_ring)
        return; /* whatever name is there is not used */
    dblock_id_text(owner, text);
    mysql_bell_name(connection, text, name);
    mysql_in_text(connection, MYSQL_B_BELL, name);
}

/* The register is locked. The newest are found first: most grants are short. */
static struct bell *find(struct mysql_bells *bells, const unsigned char *owner)
{
    size_t i = bells->n;

    while (i-- > 0)
        if (memcmp(bells->all[i].owner, owner, DBLOCK_ID_SIZE) == 0)
            return &bells->all[i];
    return NULL;
}

static void mark(struct mysql_bells *bells, struct bell *bell)
{
    if (!bell->is_marked)
        (void)atomic_fetch_add(&bells->n_marked, 1);
    bell->is_marked = 1;
}

static void take_out(struct mysql_bells *bells, struct bell *bell)
{
    size_t n_after = bells->n - 1 - (size_t)(bell - bells->all);

    if (bell->is_marked)
        (void)atomic_fetch_sub(&bells->n_marked, 1);
    memmove(bell, bell + 1, n_after * sizeof *bell);
    --bells->n;
}

static int begin_bells(struct dblock_connection *connection)
{
    struct mysql_bell_register *all;

    if (connection->bells != NULL)
        return 1;
    connection->bells = calloc(1, sizeof *connection->bells);
    if (connection->bells == NULL)
        return 0;
    all = lock_register(connection);
    connection->bells->next = all->first;
    if (all->first != NULL)
        all->first->previous = connection->bells;
    all->first = connection->bells;
    unlock_register(all);
    return 1;
}

/* Room for so many more. If there is none, some of the oldest go, in case that nobody will ever
 * give them back, but now and then only: whoever really holds so many pays nothing for it. */
static int has_room(struct dblock_connection *connection, size_t n_more)
{
    struct mysql_bells *bells = connection->bells;
    struct mysql_bell_register *all;
    uint64_t now_us;
    size_t i;

    if (bells->n + n_more <= BELLS_MAX)
        return 1;
    if (bells->n < BELLS_MAX / 2)
        return 0;
    now_us = dblock_clock_us();
    if (bells->cleared_us != 0 && now_us - bells->cleared_us < CLEAR_US)
        return 0;
    bells->cleared_us = now_us;
    all = lock_register(connection);
    for (i = 0; i < BATCH && i < bells->n; ++i)
        mark(bells, &bells->all[i]);
    unlock_register(all);
    return 0;
}

void mysql_bell_offer(struct dblock_connection *connection, const unsigned char *owner)
{
    /* Galera may run a statement twice, and these locks count. */
    int can_ring = connection->has_line && !connection->is_multi_writer &&
        begin_bells(connection) && has_room(connection, 1);

    put_bell(connection, owner, can_ring);
}

int mysql_bell_offer_many(struct dblock_connection *connection, size_t n_names)
{
    int can_ring = connection->has_line && !connection->is_multi_writer &&
        begin_bells(connection) && has_room(connection, n_names);

    mysql_in_number(connection, MYSQL_N_RINGS, can_ring);
    return can_ring;
}

void mysql_bell_locked(
    struct dblock_connection *connection, const unsigned char *owner, int is_granted)
{
    struct mysql_bells *bells = connection->bells;
    struct mysql_bell_register *all;

    if (connection->in.numbers[MYSQL_N_RINGS].value == 0)
        return;
    if (bells->n == BELLS_MAX)
        return; /* a take and its second half have locked one each: who waits for it naps */
    all = lock_register(connection);
    memcpy(bells->all[bells->n].owner, owner, DBLOCK_ID_SIZE);
    bells->all[bells->n].is_marked = 0;
    ++bells->n;
    if (!is_granted)
        mark(bells, &bells->all[bells->n - 1]);
    unlock_register(all);
}

int mysql_bell_find(struct dblock_connection *connection, const unsigned char *owner)
{
    struct mysql_bell_register *all;
    int is_here = 0;

    if (connection->bells != NULL) {
        all = lock_register(connection);
        is_here = find(connection->bells, owner) != NULL;
        unlock_register(all);
    }
    put_bell(connection, owner, is_here);
    return is_here;
}

void mysql_bell_rung(struct dblock_connection *connection, const unsigned char *owner)
{
    struct mysql_bell_register *all = lock_register(connection);
    struct bell *bell = find(connection->bells, owner);

    if (bell != NULL)
        take_out(connection->bells, bell);
    unlock_register(all);
}

void mysql_bell_mark(struct dblock_connection *connection, const unsigned char *owner)
{
    struct mysql_bell_register *all = lock_register(connection);
    struct mysql_bells *each;
    struct bell *bell;

    for (each = all->first; each != NULL; each = each->next) {
        bell = find(each, owner);
        if (bell != NULL)
            mark(each, bell);
    }
    unlock_register(all);
}

/* Takes up to BATCH marked ones out; how many. */
static size_t collect(
    struct dblock_connection *connection, char names[BATCH][MYSQL_BELL_SIZE])
{
    struct mysql_bell_register *all = lock_register(connection);
    struct mysql_bells *bells = connection->bells;
    size_t n = 0;
    size_t i = 0;

    while (i < bells->n && n < BATCH) {
        char text[40];

        if (!bells->all[i].is_marked) {
            ++i;
            continue;
        }
        dblock_id_text(bells->all[i].owner, text);
        mysql_bell_name(connection, text, names[n++]);
        take_out(bells, &bells->all[i]);
    }
    unlock_register(all);
    return n;
}

void mysql_bell_settle(struct dblock_connection *connection, const struct dblock_call *call)
{
    struct mysql_literal literals[BATCH];
    char names[BATCH][MYSQL_BELL_SIZE];
    char sql[BATCH * (2 * MYSQL_BELL_SIZE + 24)];
    size_t n, i;

    while (connection->bells != NULL && atomic_load(&connection->bells->n_marked) != 0 &&
           !connection->is_dead) {
        n = collect(connection, names);
        for (i = 0; i < BATCH; ++i) {
            const char *name = names[i < n ? i : 0];

            literals[i] =
                (struct mysql_literal) { MYSQL_LITERAL_BYTES, 0, name, strlen(name) };
        }
        if (!mysql_text_fill(sql, sizeof sql, mysql_sql_bell_release, literals, BATCH) ||
            mysql_text_run(connection, sql, call, 0, 0, NULL) != 0)
            return;
    }
}

void mysql_bell_end(struct dblock_connection *connection)
{
    struct mysql_bells *bells = connection->bells;
    struct mysql_bell_register *all;

    if (bells == NULL)
        return;
    all = lock_register(connection);
    if (bells->previous != NULL)
        bells->previous->next = bells->next;
    else
        all->first = bells->next;
    if (bells->next != NULL)
        bells->next->previous = bells->previous;
    unlock_register(all);
    free(bells);
    connection->bells = NULL;
}
