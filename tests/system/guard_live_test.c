/* SPDX-License-Identifier: MIT */
/* guard_live_test.c - a transaction of the application that is bound to a row or advisory lock:
 * what is different there from a lease (guard_test.c), as the lock lives in a connection and
 * what is pinned is the row of its token. Runs beside others. */
#include "guard_world.h"

/* What was guarded is committed before anybody has the lock with a token, although the session that
 * held it is gone. */
static void guarded__outlives_its_connection(struct world *world)
{
    if (!can_break(world))
        return;
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    expect(world, DBLOCK_PENDING, dblock_break(world->clients[1], world->name,
        world->kind->strategy, 0, &world->error));
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 200));
    run(world, 0, "UPDATE account SET balance = 8 WHERE id = 1");
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    assert_int_equal(8, number(world, 1, "SELECT balance FROM account WHERE id = 1"));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_LOST, guard(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 1));
}

/* Whoever compares tokens, a guard above all, sees the break before there is a next holder. */
static void broken_lock__is_fenced_at_once(struct world *world)
{
    int64_t token = 0;

    if (!can_break(world))
        return;
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    expect(world, DBLOCK_OK, dblock_lock_token(world->locks[0], &token, &world->error));
    expect(world, DBLOCK_OK, dblock_break(world->clients[1], world->name,
        world->kind->strategy, token, &world->error));
    assert_true(number(world, 1, "SELECT max(token) FROM dblock_token") > token);
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_LOST, guard(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    run(world, 1, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 1));
    run(world, 1, "COMMIT");
    expect(world, DBLOCK_OK, release(world, 1));
}

static void row_of_a_held_token__is_not_purged(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    world->application->database->age("another name"); /* and all tokens */
    expect(world, DBLOCK_OK, contract_purge(world->application->database, &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, release(world, 0));
    world->application->database->age(world->name);
    expect(world, DBLOCK_OK, contract_purge(world->application->database, &world->error));
    assert_int_equal(0, number(world, 0, "SELECT count(*) FROM dblock_token"));
}

/* A token that is not the grant's is no proof that the lock is lost. */
static void overwritten_token__is_no_loss(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 1, "UPDATE dblock_token SET token = token + 1");
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_E_DATABASE, guard(world, 0));
    assert_true(world->error.hint[0] != 0);
    run(world, 0, "ROLLBACK");
    assert_int_equal(1, dblock_lock_is_held(world->locks[0]));
    expect(world, DBLOCK_OK, release(world, 0));
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, release(world, 0));
}

static void numbered_lock__is_guarded_by_its_number(struct world *world)
{
    struct dblock_options options = options_of(world, LONG_MS);

    if (world->kind->strategy != DBLOCK_ADVISORY)
        return;
    options.has_advisory_id = 1;
    options.advisory_id = -4711;
    expect(world, DBLOCK_OK, dblock_acquire(
        world->clients[0], world->name, &options, &world->locks[0], &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    if (!world->application->has_one_writer) {
        expect(world, DBLOCK_OK, release(world, 0));
        expect(world, DBLOCK_BUSY, dblock_acquire(world->clients[1], "another name", &options,
            &world->locks[1], &world->error));
    }
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, world->locks[0] != NULL ? release(world, 0) : DBLOCK_OK);
}

/* Nobody but its own connection can give it back. */
static void release_in_of_a_live_lock__is_refused(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_E_UNSUPPORTED, release_in(world, 0));
    assert_true(world->error.hint[0] != 0);
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 0));
}

static const struct kind kinds[] = {
    { "row", DBLOCK_ROW, DBLOCK_HEARTBEAT_DEFAULT },
    { "advisory", DBLOCK_ADVISORY, DBLOCK_HEARTBEAT_DEFAULT },
    { NULL, 0, 0 },
};

static const struct guard_case cases[] = {
    { "guarded__outlives_its_connection", guarded__outlives_its_connection },
    { "broken_lock__is_fenced_at_once", broken_lock__is_fenced_at_once },
    { "row_of_a_held_token__is_not_purged", row_of_a_held_token__is_not_purged },
    { "overwritten_token__is_no_loss", overwritten_token__is_no_loss },
    { "numbered_lock__is_guarded_by_its_number", numbered_lock__is_guarded_by_its_number },
    { "release_in_of_a_live_lock__is_refused", release_in_of_a_live_lock__is_refused },
    { NULL, NULL },
};

int main(void)
{
    return guard_run("guard_live", kinds, cases);
}
