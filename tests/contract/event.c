/* SPDX-License-Identifier: MIT */
/* event.c - P9: a holder is told when its lock is lost, once, whichever way it
 * listens. */
#include "hearing.h"

enum { SLACK_MS = 1500, TTL_MS = HEARING_TTL_MS };

static dblock_client *open_attentive(struct contract *contract, const char *label)
{
    struct dblock_config config = own_config(contract);

    /* row and advisory are pinged every third of this */
    config.ttl_ms = TTL_MS;
    config.label = label;
    return open_configured(contract, CONTRACT_URL, &config);
}

static void expect_lost_once(
    struct contract *contract, dblock_lock *lock, struct hearing *hearing, int cause)
{
    assert_true(test_until(has_heard_lost, hearing, hearing->ttl_ms + SLACK_MS));
    assert_int_equal(cause, atomic_load(&hearing->cause));
    assert_int_equal(cause, dblock_lock_cause(lock));
    assert_int_equal(0, atomic_load(&hearing->was_held));
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_ptr_equal(lock, hearing->lock);
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
    expect_status(contract, DBLOCK_LOST, dblock_release(lock, &contract->error));
    test_pass_ms(30);
    assert_int_equal(1, atomic_load(&hearing->n_lost));
    assert_int_equal(0, atomic_load(&hearing->n_others));
}

/* PITFALL(S15): the next heartbeat reads back what it still has.
 * E7: by callback, within a heartbeat. */
static void broken_grant__is_told_by_callback(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { .ttl_ms = STEADY_TTL_MS };
    dblock_client *a = open_attentive(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take_hearing(contract, a, name, &hearing);

    expect_status(
        contract, DBLOCK_OK, dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    expect_lost_once(contract, lock, &hearing,
        is_kind(contract, LIVE) ? DBLOCK_CAUSE_CONNECTION : DBLOCK_CAUSE_BROKEN);
}

static void expired_grant__is_told_by_callback(struct contract *contract)
{
    struct hearing hearing = { 0 };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_hearing(contract, client, own_name(contract, "x"), &hearing);

    expect_lost_once(contract, lock, &hearing, DBLOCK_CAUSE_DEADLINE);
}

/* D5, D7: the server ends the session; there is no silent reconnect. */
static void live_grant__is_lost_with_its_connection(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { 0 };
    dblock_client *a = open_attentive(contract, "a");
    dblock_lock *lock = take_hearing(contract, a, name, &hearing);

    contract->database->cut();
    expect_lost_once(contract, lock, &hearing, DBLOCK_CAUSE_CONNECTION);
    /* the client goes on with a new one */
    release(contract, take_within(contract, a, name, 3000));
}

static void heartbeat_grant__survives_its_connections(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { .ttl_ms = STEADY_TTL_MS };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_hearing(contract, client, name, &hearing);

    contract->database->cut();
    test_pass_ms(STEADY_TTL_MS + 300); /* longer than without heartbeats */
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    assert_int_equal(0, atomic_load(&hearing.n_lost));
    release(contract, lock);
}

static void deleted_session__is_told_by_callback(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { .ttl_ms = STEADY_TTL_MS };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_hearing(contract, client, name, &hearing);

    contract->database->delete_session(contract->kind->strategy, name);
    expect_lost_once(contract, lock, &hearing, DBLOCK_CAUSE_SERVER);
    /* a session is never used again, but the client begins another */
    release(contract, take(contract, client, name));
}

/* PITFALL(C8): a row that is taken away by hand does not stay believed in. */
static void deleted_row__is_found_by_confirm(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { 0 };
    struct dblock_options options = own_options(contract);
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock;

    options.on_event = hear;
    options.context = &hearing;
    lock = take_with(contract, client, name, &options);
    contract->database->delete_row(contract->kind->strategy, name);
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
    expect_lost_once(contract, lock, &hearing, DBLOCK_CAUSE_SERVER);
}

static void release__is_no_loss(struct contract *contract)
{
    struct hearing hearing = { 0 };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_hearing(contract, client, own_name(contract, "x"), &hearing);

    release(contract, lock);
    test_pass_ms(is_kind(contract, TIMED) ? TTL_MS + 100 : 100);
    assert_int_equal(0, atomic_load(&hearing.n_lost));
    lock = take_hearing(contract, client, own_name(contract, "y"), &hearing);
    close_client(contract, client);
    assert_int_equal(0, atomic_load(&hearing.n_lost));
}

/* --------------------------------------------------------------- descriptors */

static void lock_fd__is_readable_once_lost(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_attentive(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    int fd = -1;
    int again = -1;

    options.ttl_ms = TTL_MS;
    lock = take_with(contract, a, name, &options);
    expect_status(contract, DBLOCK_OK, dblock_lock_fd(lock, &fd, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_lock_fd(lock, &again, &contract->error));
    assert_int_equal(fd, again);
    assert_false(test_readable(fd, 0));
    expect_status(
        contract, DBLOCK_OK, dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    assert_true(test_readable(fd, TTL_MS + SLACK_MS));
    assert_int_equal(0, dblock_lock_is_held(lock));
}

static void lock_fd__is_readable_once_released(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));
    int fd = -1;

    expect_status(contract, DBLOCK_OK, dblock_lock_fd(lock, &fd, &contract->error));
    release(contract, lock);
    assert_true(test_readable(fd, 0));
    /* and one that is made afterwards too */
    lock = take(contract, client, own_name(contract, "y"));
    release(contract, lock);
    expect_status(contract, DBLOCK_OK, dblock_lock_fd(lock, &fd, &contract->error));
    assert_true(test_readable(fd, 0));
}

static void client_queue__has_the_events_of_all_locks(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_event event = DBLOCK_EVENT_INIT;
    dblock_lock *locks[3];
    int is_told[3] = { 0, 0, 0 };
    int fd = -1;
    size_t i;
    size_t k;

    expect_status(contract, DBLOCK_OK, dblock_client_fd(client, &fd, &contract->error));
    assert_int_equal(DBLOCK_EMPTY, dblock_client_next_event(client, &event));
    assert_false(test_readable(fd, 0));
    options.ttl_ms = 150;
    for (i = 0; i < 3; ++i) {
        options.context = &locks[i];
        locks[i] = take_with(contract, client, own_name(contract, "x"), &options);
    }
    for (i = 0; i < 3; ++i) {
        assert_true(test_readable(fd, 3000));
        assert_int_equal(DBLOCK_OK, dblock_client_next_event(client, &event));
        assert_int_equal(DBLOCK_EVENT_LOST, event.kind);
        assert_int_equal(DBLOCK_CAUSE_DEADLINE, event.cause);
        for (k = 0; k < 3; ++k)
            if (locks[k] == event.lock) {
                assert_ptr_equal(&locks[k], event.context);
                ++is_told[k];
            }
    }
    for (k = 0; k < 3; ++k)
        assert_int_equal(1, is_told[k]);
    assert_int_equal(DBLOCK_EMPTY, dblock_client_next_event(client, &event));
    assert_false(test_readable(fd, 0));
}

static void free__removes_the_events_of_the_lock(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_event event = DBLOCK_EVENT_INIT;
    dblock_lock *first;
    dblock_lock *second;
    int fd = -1;

    options.ttl_ms = 100;
    first = take_with(contract, client, own_name(contract, "x"), &options);
    second = take_with(contract, client, own_name(contract, "y"), &options);
    expect_status(contract, DBLOCK_OK, dblock_client_fd(client, &fd, &contract->error));
    assert_true(is_lost_within(first, 2000));
    assert_true(is_lost_within(second, 2000));
    assert_true(test_readable(fd, 1000));
    test_pass_ms(100); /* until both are told */
    free_lock(contract, first);
    assert_int_equal(DBLOCK_OK, dblock_client_next_event(client, &event));
    assert_ptr_equal(second, event.lock);
    assert_int_equal(DBLOCK_EMPTY, dblock_client_next_event(client, &event));
    assert_false(test_readable(fd, 0));
}

/* ------------------------------------------------------------------ expiring */

static void expiring__comes_before_the_deadline(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct hearing hearing = { 0 };
    dblock_lock *lock;

    options.ttl_ms = 800; /* belief ends at 700 */
    options.expiring_ms = 400;
    options.on_event = hear;
    options.context = &hearing;
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    assert_int_equal(0, atomic_load(&hearing.n_expiring));
    assert_true(test_until(has_heard_lost, &hearing, 800 + SLACK_MS));
    assert_int_equal(1, atomic_load(&hearing.n_expiring));
    assert_in_range(atomic_load(&hearing.remaining_ms), 200, 400);
    assert_int_equal(0, dblock_lock_is_held(lock));
}

static void expiring__does_not_come_while_heartbeats_do(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct hearing hearing = { 0 };

    options.ttl_ms = STEADY_TTL_MS; /* belief would end at 2100 */
    options.expiring_ms = 100;
    options.on_event = hear;
    options.context = &hearing;
    (void)take_with(contract, client, own_name(contract, "x"), &options);
    test_pass_ms(STEADY_TTL_MS + 300);
    assert_int_equal(0, atomic_load(&hearing.n_expiring));
    assert_int_equal(0, atomic_load(&hearing.n_lost));
}

/* Nothing gets through for a while, then it does: told of both, and not lost. */
static void restored__comes_when_the_database_is_back(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct hearing hearing = { 0 };
    uint64_t end_ms;
    dblock_lock *lock;

    options.ttl_ms = STEADY_TTL_MS; /* a heartbeat at 800; belief ends at 2100 */
    options.expiring_ms = 1000;
    options.on_event = hear;
    options.context = &hearing;
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    contract->database->set_down(1);
    end_ms = test_now_ms() + 5000;
    while (atomic_load(&hearing.n_expiring) == 0 && test_now_ms() < end_ms)
        test_pass_ms(2);
    contract->database->set_down(0);
    while (atomic_load(&hearing.n_restored) == 0 && test_now_ms() < end_ms)
        test_pass_ms(2);
    assert_int_equal(1, atomic_load(&hearing.n_expiring));
    assert_int_equal(1, atomic_load(&hearing.n_restored));
    assert_int_equal(0, atomic_load(&hearing.n_lost));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
}

/* The warning is due before the first heartbeat, which then comes as it should: told at once, and
 * not when the belief would have ended. */
static void restored__comes_with_the_first_heartbeat(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct hearing hearing = { 0 };
    uint64_t begun_ms = test_now_ms();

    options.ttl_ms = 2000; /* a heartbeat at 667; belief would end at 1750 */
    options.expiring_ms = 1200;
    options.on_event = hear;
    options.context = &hearing;
    (void)take_with(contract, client, own_name(contract, "x"), &options);
    while (atomic_load(&hearing.n_restored) == 0 && test_now_ms() - begun_ms < 1600)
        test_pass_ms(2);
    assert_int_equal(1, atomic_load(&hearing.n_expiring));
    assert_int_equal(1, atomic_load(&hearing.n_restored));
}

/* E10: an outage longer than the ttl. */
static void outage__longer_than_the_ttl_loses_the_grant(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct hearing hearing = { 0 };
    dblock_client *client = open_attentive(contract, "a");
    dblock_lock *lock = take_hearing(contract, client, name, &hearing);

    contract->database->set_down(1);
    assert_true(test_until(has_heard_lost, &hearing, TTL_MS + SLACK_MS));
    contract->database->set_down(0);
    expect_lost_once(contract, lock, &hearing,
        is_kind(contract, LIVE) ? DBLOCK_CAUSE_CONNECTION : DBLOCK_CAUSE_DEADLINE);
    release(contract, take_within(contract, client, name, TTL_MS + SLACK_MS));
}

static int can_break_row(const struct contract_database *database)
{
    return database->breaks_row;
}

static int can_break_advisory(const struct contract_database *database)
{
    return database->breaks_advisory;
}

static int can_cut(const struct contract_database *database)
{
    return database->cut != NULL;
}

static int can_go_down(const struct contract_database *database)
{
    return database->set_down != NULL;
}

const struct contract_case event_cases[] = {
    { "broken_grant__is_told_by_callback", broken_grant__is_told_by_callback, BEAT, NULL },
    { "broken_grant__is_told_by_callback", broken_grant__is_told_by_callback, ROW, can_break_row },
    { "broken_grant__is_told_by_callback", broken_grant__is_told_by_callback, ADVISORY,
        can_break_advisory },
    { "expired_grant__is_told_by_callback", expired_grant__is_told_by_callback, TIMED, NULL },
    { "live_grant__is_lost_with_its_connection", live_grant__is_lost_with_its_connection, LIVE,
        can_cut },
    { "heartbeat_grant__survives_its_connections", heartbeat_grant__survives_its_connections, BEAT,
        can_cut },
    { "deleted_session__is_told_by_callback", deleted_session__is_told_by_callback, BEAT, NULL },
    { "deleted_row__is_found_by_confirm", deleted_row__is_found_by_confirm, RECORDED, NULL },
    { "release__is_no_loss", release__is_no_loss, ALL, NULL },
    { "lock_fd__is_readable_once_lost", lock_fd__is_readable_once_lost, BEAT, NULL },
    { "lock_fd__is_readable_once_lost", lock_fd__is_readable_once_lost, ROW, can_break_row },
    { "lock_fd__is_readable_once_lost", lock_fd__is_readable_once_lost, ADVISORY,
        can_break_advisory },
    { "lock_fd__is_readable_once_released", lock_fd__is_readable_once_released, ALL, NULL },
    { "client_queue__has_the_events_of_all_locks", client_queue__has_the_events_of_all_locks, TIMED,
        NULL },
    { "free__removes_the_events_of_the_lock", free__removes_the_events_of_the_lock, TIMED, NULL },
    { "expiring__comes_before_the_deadline", expiring__comes_before_the_deadline, TIMED, NULL },
    { "expiring__does_not_come_while_heartbeats_do", expiring__does_not_come_while_heartbeats_do,
        BEAT, NULL },
    { "restored__comes_with_the_first_heartbeat", restored__comes_with_the_first_heartbeat, BEAT,
        NULL },
    { "restored__comes_when_the_database_is_back", restored__comes_when_the_database_is_back, BEAT,
        can_go_down },
    { "outage__longer_than_the_ttl_loses_the_grant", outage__longer_than_the_ttl_loses_the_grant,
        BEAT | LIVE, can_go_down },
    { NULL, NULL, 0, NULL },
};
