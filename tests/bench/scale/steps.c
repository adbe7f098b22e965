/* SPDX-License-Identifier: MIT */
/* steps.c - single steps of a driver, without the library's loops around them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/numbers.h"
#include "scale.h"

enum { LIMIT_US = 30000000, TTL_US = 600000000 };

static const uint64_t ttl_us = TTL_US;

static struct dblock_call limit(void)
{
    struct dblock_call call = { dblock_clock_us() + LIMIT_US, -1 };

    return call;
}

static int complain(const char *what, dblock_status status, const struct dblock_error *error)
{
    (void)fprintf(stderr, "scale: %s: %s: %s\n", what, dblock_status_name(status),
        status < 0 ? error->message : "not done");
    return -1;
}

int steps_open(struct steps *steps, const dblock_driver *driver, const char *url)
{
    struct dblock_target_config config = { .url = url,
        .host = "bench",
        .pid = getpid(),
        .label = "",
        .connect_timeout_us = LIMIT_US,
        .io_timeout_us = LIMIT_US,
        .ttl_us = TTL_US };
    struct dblock_call call = limit();
    struct dblock_answer answer;
    struct dblock_error error;
    dblock_status status;
    uint64_t now_ns = bench_now_ns();
    long pid = getpid();

    memset(steps, 0, sizeof *steps);
    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    memcpy(steps->session, &now_ns, sizeof now_ns);
    memcpy(steps->session + sizeof now_ns, &pid, sizeof pid);
    steps->driver = driver;
    status = driver->target_open(&config, &steps->target, &error);
    if (status == DBLOCK_OK)
        status = driver->connection.open(
            steps->target, DBLOCK_ROLE_KEEPER, &call, &steps->connection, &answer, &error);
    return status == DBLOCK_OK ? 0 : complain("connect", status, &error);
}

void steps_close(struct steps *steps)
{
    if (steps->driver == NULL)
        return;
    steps->driver->connection.close(steps->connection, DBLOCK_CLOSE_POLITE);
    steps->driver->target_close(steps->target);
}

int steps_begin_session(struct steps *steps)
{
    struct dblock_call call = limit();
    struct dblock_answer answer = { 0 };
    struct dblock_error error;
    dblock_status status = steps->driver->session.begin(
        steps->connection, &call, steps->session, ttl_us, &answer, &error);

    return status == DBLOCK_OK ? 0 : complain("begin a session", status, &error);
}

int steps_take_lease(struct steps *steps, const char *name)
{
    unsigned char owner[DBLOCK_ID_SIZE];
    struct dblock_take take = { .subject = { .name = name, .name_size = strlen(name) },
        .owner = owner,
        .session = steps->session,
        .not_after_us = INT64_C(1) << 60,
        .label = "" };
    struct dblock_call call = limit();
    struct dblock_answer answer = { 0 };
    struct dblock_error error;
    uint64_t now_ns = bench_now_ns();
    dblock_status status;

    memcpy(owner, steps->session, sizeof owner);
    memcpy(owner, &now_ns, sizeof now_ns);
    status = steps->driver->lease.take(steps->connection, &call, &take, NULL, &answer, &error);
    return status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES
        ? 0
        : complain("take", status, &error);
}

int steps_renew(void *context)
{
    struct steps *steps = context;
    struct dblock_call call = limit();
    struct dblock_answer answer = { 0 };
    struct dblock_error error;
    dblock_status status = steps->driver->session.renew(
        steps->connection, &call, steps->session, ttl_us, &answer, &error);

    return status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES
        ? 0
        : complain("renew", status, &error);
}

int steps_end_session(struct steps *steps)
{
    struct dblock_call call = limit();
    struct dblock_answer answer = { 0 };
    struct dblock_error error;
    dblock_status status =
        steps->driver->session.end(steps->connection, &call, steps->session, &answer, &error);

    return status == DBLOCK_OK ? 0 : complain("end a session", status, &error);
}

long steps_purge(struct steps *steps)
{
    struct dblock_call call = limit();
    struct dblock_answer answer = { 0 };
    struct dblock_error error;
    dblock_status status =
        steps->driver->observe.purge(steps->connection, &call, &answer, &error);

    return status == DBLOCK_OK ? (long)answer.n_rows : complain("purge", status, &error);
}
