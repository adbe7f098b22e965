/* SPDX-License-Identifier: MIT */
/* sim_driver_steps.c - the driver table over the simulated worlds. What a step
 * does to the data is in sim_world.c and sim_world_locks.c. */
#include "sim_driver_parts.h"

#include <poll.h>
#include <unistd.h>

static dblock_status connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_PING, call, answer, reterr);

    /* what a connection holds lives as long as the connection */
    if (visit.is_inside) {
        answer->outcome = DBLOCK_ANSWER_YES;
        answer->now_us = visit.now_us;
    }
    return sim_leave(&visit, reterr);
}

static dblock_status connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_VERIFY, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_verify(visit.world, visit.now_us, answer, reterr);
    return sim_leave(&visit, reterr);
}

/* ------------------------------------------------------------------ session */

static dblock_status session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_BEGIN, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_session_begin(
            visit.world, visit.now_us, &connection->caller, session, ttl_us, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_RENEW, call, answer, reterr);

    if (visit.is_inside)
        visit.status =
            sim_session_renew(visit.world, visit.now_us, session, ttl_us, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_END, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_session_end(visit.world, visit.now_us, session, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_HOLDS, call, answer, reterr);

    if (visit.is_inside)
        visit.status =
            sim_session_holds(visit.world, visit.now_us, session, fn, context, answer, reterr);
    return sim_leave(&visit, reterr);
}

/* --------------------------------------------------------- lease and insert */

static dblock_status hold_take(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_TAKE, call, answer, reterr);
    struct dblock_grant seen = DBLOCK_GRANT_INIT;

    if (visit.is_inside && take->heeds_line &&
        sim_line_has_first(connection, strategy, &take->subject)) {
        /* whoever is first may have it, if it is free: busy at any rate */
        visit.status = sim_hold_look(visit.world, visit.now_us, strategy, take->subject.name,
            &seen, answer, reterr);
        answer->outcome = DBLOCK_ANSWER_BUSY;
        if (holder != NULL)
            *holder = seen;
    } else if (visit.is_inside) {
        visit.status = sim_hold_take(
            visit.world, visit.now_us, &connection->caller, strategy, take, holder, answer, reterr);
    }
    return sim_leave(&visit, reterr);
}

static dblock_status hold_drop(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_DROP, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_hold_drop(
            visit.world, visit.now_us, strategy, subject->name, owner, keep_us, answer, reterr);
    if (visit.is_inside && visit.status == DBLOCK_OK)
        sim_line_ring(connection, strategy, subject);
    return sim_leave(&visit, reterr);
}

static dblock_status hold_extend(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_EXTEND, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_hold_extend(
            visit.world, visit.now_us, strategy, subject->name, owner, ttl_us, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status hold_look(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_LOOK, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_hold_look(
            visit.world, visit.now_us, strategy, subject->name, grant, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status hold_draw(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_DRAW, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_hold_draw(
            visit.world, visit.now_us, strategy, subject->name, owner, answer, reterr);
    return sim_leave(&visit, reterr);
}

/* The table has no place for the strategy, so each entry is a function of its own. */
#define HOLD_ENTRIES(prefix, strategy)                                                             \
    static dblock_status prefix##_take(struct dblock_connection *connection,                       \
        const struct dblock_call *call, const struct dblock_take *take,                            \
        struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)    \
    {                                                                                              \
        return hold_take(connection, strategy, call, take, holder, answer, reterr);                \
    }                                                                                              \
    static dblock_status prefix##_drop(struct dblock_connection *connection,                       \
        const struct dblock_call *call, const struct dblock_subject *subject,                      \
        const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,                \
        struct dblock_error *reterr)                                                               \
    {                                                                                              \
        return hold_drop(connection, strategy, call, subject, owner, keep_us, answer, reterr);     \
    }                                                                                              \
    static dblock_status prefix##_extend(struct dblock_connection *connection,                     \
        const struct dblock_call *call, const struct dblock_subject *subject,                      \
        const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,                 \
        struct dblock_error *reterr)                                                               \
    {                                                                                              \
        return hold_extend(connection, strategy, call, subject, owner, ttl_us, answer, reterr);    \
    }                                                                                              \
    static dblock_status prefix##_look(struct dblock_connection *connection,                       \
        const struct dblock_call *call, const struct dblock_subject *subject,                      \
        struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)     \
    {                                                                                              \
        return hold_look(connection, strategy, call, subject, grant, answer, reterr);              \
    }                                                                                              \
    static dblock_status prefix##_draw(struct dblock_connection *connection,                       \
        const struct dblock_call *call, const struct dblock_subject *subject,                      \
        const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)     \
    {                                                                                              \
        return hold_draw(connection, strategy, call, subject, owner, answer, reterr);              \
    }                                                                                              \
    static dblock_status prefix##_take_many(struct dblock_connection *connection,                  \
        const struct dblock_call *call, const struct dblock_take *terms,                           \
        const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,            \
        struct dblock_answer *answer, struct dblock_error *reterr)                                 \
    {                                                                                              \
        return sim_take_many(                                                                      \
            connection, strategy, call, terms, many, ret_place, holder, answer, reterr);           \
    }                                                                                              \
    static dblock_status prefix##_drop_many(struct dblock_connection *connection,                  \
        const struct dblock_call *call, const struct dblock_many *many,                            \
        struct dblock_answer *answer, struct dblock_error *reterr)                                 \
    {                                                                                              \
        return sim_drop_many(connection, strategy, call, many, answer, reterr);                    \
    }

HOLD_ENTRIES(lease, DBLOCK_LEASE)
HOLD_ENTRIES(insert, DBLOCK_INSERT)

/* --------------------------------------------------------- row and advisory */

static void drain(const struct dblock_connection *connection)
{
    uint64_t count;

    if (read(connection->fd, &count, sizeof count) < 0)
        return; /* nothing was in it */
}

dblock_status sim_wait_in_queue(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer)
{
    const uint64_t number = connection->caller.connection;
    struct sim_site *site = connection->target->site;
    struct dblock_call wait = *call;
    uint64_t now_us = dblock_clock_us();
    int is_ready = 1;

    if (wait.deadline_us > now_us && take->wait_us < wait.deadline_us - now_us)
        wait.deadline_us = now_us + take->wait_us;
    sim_lock_enqueue(&site->world, &connection->caller, strategy, take);
    drain(connection);
    while (is_ready > 0 && !connection->is_dead &&
           !sim_lock_is_held(&site->world, number, strategy, &take->subject)) {
        (void)pthread_mutex_unlock(&site->mutex);
        is_ready = dblock_fd_wait(connection->fd, POLLIN, &wait, 1);
        (void)pthread_mutex_lock(&site->mutex);
    }
    sim_lock_leave(&site->world, number);
    if (connection->is_dead)
        return DBLOCK_E_UNCERTAIN;
    drain(connection);
    if (!sim_lock_is_held(&site->world, number, strategy, &take->subject))
        return is_ready < 0 ? DBLOCK_CANCELLED : DBLOCK_OK; /* with the BUSY of before */
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->now_us = sim_site_now(site);
    return DBLOCK_OK;
}

static dblock_status lock_take(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_TAKE, call, answer, reterr);

    if (!visit.is_inside)
        return visit.status;
    visit.status = sim_lock_take(
        visit.world, visit.now_us, &connection->caller, strategy, take, holder, answer, reterr);
    /* one that has it already is told so at once, and does not wait for itself */
    if (visit.status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_BUSY && take->wait_us > 0 &&
        !sim_lock_is_held(visit.world, connection->caller.connection, strategy, &take->subject))
        visit.status = sim_wait_in_queue(connection, strategy, call, take, answer);
    if (visit.status == DBLOCK_E_UNCERTAIN)
        visit.is_lost = 1;
    return sim_leave(&visit, reterr);
}

static dblock_status row_seed(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_SEED, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_lock_seed(visit.world, visit.now_us, subject, answer, reterr);
    return sim_leave(&visit, reterr);
}

typedef dblock_status (*lock_work)(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);

static dblock_status lock_step(struct dblock_connection *connection, enum sim_step step,
    lock_work work, int32_t strategy, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, step, call, answer, reterr);

    if (visit.is_inside)
        visit.status = work(visit.world, visit.now_us, connection->caller.connection, strategy,
            subject, answer, reterr);
    return sim_leave(&visit, reterr);
}

#define LOCK_ENTRY(name, step, work, strategy)                                                     \
    static dblock_status name(struct dblock_connection *connection,                                \
        const struct dblock_call *call, const struct dblock_subject *subject,                      \
        struct dblock_answer *answer, struct dblock_error *reterr)                                 \
    {                                                                                              \
        return lock_step(connection, step, work, strategy, call, subject, answer, reterr);         \
    }

#define LOCK_ENTRIES(prefix, strategy)                                                             \
    static dblock_status prefix##_take(struct dblock_connection *connection,                       \
        const struct dblock_call *call, const struct dblock_take *take,                            \
        struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)    \
    {                                                                                              \
        return lock_take(connection, strategy, call, take, holder, answer, reterr);                \
    }                                                                                              \
    LOCK_ENTRY(prefix##_drop, SIM_STEP_DROP, sim_lock_drop, strategy)                              \
    LOCK_ENTRY(prefix##_prove, SIM_STEP_PROVE, sim_lock_prove, strategy)                           \
    LOCK_ENTRY(prefix##_draw, SIM_STEP_DRAW, sim_lock_draw, strategy)

LOCK_ENTRIES(row, DBLOCK_ROW)
LOCK_ENTRIES(advisory, DBLOCK_ADVISORY)

/* ------------------------------------------------------------------ observe */

static dblock_status observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_LIST, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_list(visit.world, visit.now_us, page, fn, context, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_BREAK, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_end(visit.world, visit.now_us, strategy, subject, token, answer, reterr);
    if (visit.is_inside && visit.status == DBLOCK_OK)
        sim_line_ring(connection, strategy, subject);
    return sim_leave(&visit, reterr);
}

static dblock_status observe_end_token(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_BREAK, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_end_token(
            visit.world, visit.now_us, strategy, subject, token, answer, reterr);
    return sim_leave(&visit, reterr);
}

static dblock_status observe_purge(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_PURGE, call, answer, reterr);

    if (visit.is_inside)
        visit.status = sim_purge(visit.world, visit.now_us, answer, reterr);
    return sim_leave(&visit, reterr);
}

static const dblock_driver driver = {
    .abi = DBLOCK_DRIVER_ABI,
    .struct_size = sizeof driver,
    .scheme = "sim",
    .schema = "-- the simulated database needs no tables\n",
    .target_open = sim_target_open,
    .target_close = sim_target_close,
    .install = sim_install,
    .connection = { sim_connection_open, sim_connection_close, sim_connection_is_alive,
        sim_connection_fd, connection_ping, connection_verify },
    .session = { session_begin, session_renew, session_end, session_holds },
    .lease = { lease_take, lease_drop, lease_extend, lease_look, lease_draw, lease_take_many,
        lease_drop_many },
    .insert = { insert_take, insert_drop, insert_extend, insert_look, insert_draw,
        insert_take_many, insert_drop_many },
    .line = { sim_line_stand, sim_line_rest, sim_line_leave, 0 },
    .row = { row_seed, row_take, row_drop, row_prove, row_draw },
    .advisory = { NULL, advisory_take, advisory_drop, advisory_prove, advisory_draw },
    .observe = { .list = observe_list, .end = observe_end, .end_token = observe_end_token,
        .purge = observe_purge },
};

const dblock_driver *sim_driver(void)
{
    return &driver;
}
