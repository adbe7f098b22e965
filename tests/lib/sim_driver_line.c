/* SPDX-License-Identifier: MIT */
/* sim_driver_line.c - the lines of those who wait for lease and insert: a lock of its
 * own kind for each, which the first holds, and the socket of the first as the bell. */
#include "sim_driver_parts.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Not a strategy: never listed. */
static int32_t kind_of(int strategy)
{
    return 100 + strategy;
}

static struct dblock_connection *find_first(
    struct sim_site *site, int strategy, const struct dblock_subject *subject)
{
    struct dblock_connection *each = site->connections;

    while (each != NULL &&
           !sim_lock_is_held(
               &site->world, each->caller.connection, kind_of(strategy), subject))
        each = each->next;
    return each;
}

int sim_line_has_first(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    return find_first(connection->target->site, strategy, subject) != NULL;
}

void sim_line_ring(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    struct dblock_connection *first =
        find_first(connection->target->site, strategy, subject);
    const uint64_t one = 1;

    if (first == NULL)
        return;
    first->is_rung = 1;
    if (write(first->fd, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static struct dblock_subject subject_of(const struct dblock_connection *connection)
{
    struct dblock_subject subject = { connection->line_name, strlen(connection->line_name), 0, 0 };

    return subject;
}

dblock_status sim_line_stand(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, uint64_t wait_us, int is_fair,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_STAND, call, answer, reterr);
    struct dblock_take take;

    (void)is_fair; /* it is */
    if (!visit.is_inside)
        return visit.status;
    memset(&take, 0, sizeof take);
    take.subject = *subject;
    take.wait_us = wait_us;
    take.label = "";
    dblock_text_copy(connection->line_name, sizeof connection->line_name, subject->name);
    connection->line_strategy = strategy;
    connection->is_rung = 0;
    visit.status = sim_lock_take(visit.world, visit.now_us, &connection->caller,
        kind_of(strategy), &take, NULL, answer, reterr);
    if (visit.status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_BUSY)
        visit.status = sim_wait_in_queue(connection, kind_of(strategy), call, &take, answer);
    if (visit.status == DBLOCK_E_UNCERTAIN)
        visit.is_lost = 1;
    return sim_leave(&visit, reterr);
}

dblock_status sim_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_site *site = connection->target->site;
    struct sim_visit visit;
    uint64_t count;
    int is_ready = 1;

    (void)owner;
    visit = sim_enter(connection, SIM_STEP_REST, call, answer, reterr);
    if (!visit.is_inside)
        return visit.status;
    while (is_ready > 0 && !connection->is_dead && !connection->is_rung) {
        (void)pthread_mutex_unlock(&site->mutex);
        is_ready = dblock_fd_wait(connection->fd, POLLIN, call, 1);
        (void)pthread_mutex_lock(&site->mutex);
    }
    if (connection->is_dead) {
        visit.is_lost = 1;
        return sim_leave(&visit, reterr);
    }
    if (read(connection->fd, &count, sizeof count) < 0)
        count = 0; /* not rung */
    answer->outcome = connection->is_rung ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    connection->is_rung = 0;
    if (is_ready < 0) {
        const struct dblock_subject subject = subject_of(connection);

        visit.status = sim_lock_drop(visit.world, sim_site_now(site),
            connection->caller.connection, kind_of(connection->line_strategy), &subject, answer,
            reterr);
        visit.status = DBLOCK_CANCELLED;
    }
    return sim_leave(&visit, reterr);
}

void sim_line_leave(struct dblock_connection *connection)
{
    const struct dblock_subject subject = subject_of(connection);
    struct sim_site *site = connection->target->site;
    struct dblock_answer answer;
    struct dblock_error error;
    uint64_t count;

    (void)pthread_mutex_lock(&site->mutex);
    (void)sim_lock_drop(&site->world, sim_site_now(site), connection->caller.connection,
        kind_of(connection->line_strategy), &subject, &answer, &error);
    if (!connection->is_dead && read(connection->fd, &count, sizeof count) < 0)
        count = 0; /* nothing was in it */
    connection->is_rung = 0;
    (void)pthread_mutex_unlock(&site->mutex);
}
