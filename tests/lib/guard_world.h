/* SPDX-License-Identifier: MIT */
/* guard_world.h - what the tests of the guard share: two clients and two connections of the
 * application for each database and kind of grant, and the running of cases in them. */
#ifndef DBLOCK_TEST_GUARD_WORLD_H
#define DBLOCK_TEST_GUARD_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/dblock.h>

#include "application.h"

enum { LONG_MS = 20000, HOLD_MS = 300 };

struct kind {
    const char *name;
    int strategy;
    int heartbeat;
};

/* Two clients, and two connections of the application; freed after each test. */
struct world {
    const struct application *application;
    const struct kind *kind;
    dblock_client *clients[2];
    void *connections[2];
    char name[64];
    dblock_lock *locks[2];
    struct dblock_error error;
};

/* A case for each database and kind; one that has nothing to do there returns. */
struct guard_case {
    const char *name;
    void (*run)(struct world *world);
};

/* What main() returns. The kinds of `kinds`, up to one without a name; row and advisory only where
 * they are not refused. */
int guard_run(const char *title, const struct kind *kinds, const struct guard_case *cases);

void expect_at(struct world *world, dblock_status expected, dblock_status actual, int line);
#define expect(world, expected, actual) expect_at(world, expected, actual, __LINE__)

/* Lives in a connection: what is pinned is the row of its token. */
int is_live(const struct world *world);
/* Whether dblock_break() can end it. */
int can_break(const struct world *world);
/* With DBLOCK_FENCED what is live. */
struct dblock_options options_of(const struct world *world, uint64_t ttl_ms);
dblock_status take(struct world *world, int who, uint64_t ttl_ms, uint64_t wait_ms);
dblock_status release(struct world *world, int who);
dblock_status guard(struct world *world, int who);
dblock_status release_in(struct world *world, int who);
/* On the connection of the application. */
void run(struct world *world, int who, const char *sql);
int64_t number(struct world *world, int who, const char *sql);

#endif
