/* SPDX-License-Identifier: MIT */
/* waiter_test.c - the one descriptor of a wait: its own canceller ends it, or the closing of its
 * client, and not what ended the wait whose descriptor it goes on with. */
#include "core/waiter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "sim_driver.h"

#define WORLD "waiter_test"

static dblock_client *client;
static dblock_canceller *cancellers[2];
static struct dblk_waiter waiters[2];
static struct dblock_error error;

static int begin(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 2; ++i)
        if (dblock_canceller_new(&cancellers[i], &error) != DBLOCK_OK)
            return -1;
    if (sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error) != 0)
        return -1;
    for (i = 0; i < 2; ++i)
        dblk_waiter_init(&waiters[i], client, cancellers[i]);
    return 0;
}

static int end(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 2; ++i)
        dblock_canceller_free(cancellers[i]);
    if (client != NULL)
        dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

static int is_over(struct dblk_waiter *waiter)
{
    struct pollfd descriptor = { dblk_waiter_fd(waiter), POLLIN, 0 };

    assert_true(descriptor.fd >= 0);
    return poll(&descriptor, 1, 0) == 1;
}

static void next_wait__goes_on_with_the_descriptor_and_not_with_the_canceller(void **state)
{
    int fd;

    (void)state;
    assert_false(is_over(&waiters[0]));
    fd = dblk_waiter_fd(&waiters[0]);
    dblock_cancel(cancellers[0]);
    assert_true(is_over(&waiters[0]));
    dblk_waiter_fini(&waiters[0]);
    assert_int_equal(fd, dblk_waiter_fd(&waiters[1]));
    assert_false(is_over(&waiters[1]));
    dblock_cancel(cancellers[1]);
    assert_true(is_over(&waiters[1]));
    dblk_waiter_fini(&waiters[1]);
}

static void two_at_once__have_one_each(void **state)
{
    (void)state;
    assert_int_not_equal(dblk_waiter_fd(&waiters[0]), dblk_waiter_fd(&waiters[1]));
    dblock_cancel(cancellers[1]);
    assert_false(is_over(&waiters[0]));
    assert_true(is_over(&waiters[1]));
    dblk_waiter_fini(&waiters[0]);
    dblk_waiter_fini(&waiters[1]);
}

static void close__ends_each(void **state)
{
    (void)state;
    (void)dblk_waiter_fd(&waiters[1]);
    dblk_waiter_fini(&waiters[1]);
    assert_false(is_over(&waiters[0])); /* by the descriptor of the other one, */
    assert_false(is_over(&waiters[1])); /* which has a new one */
    dblk_client_ref(client);
    dblock_close(client);
    assert_true(is_over(&waiters[0]));
    assert_true(is_over(&waiters[1]));
    dblk_waiter_fini(&waiters[0]);
    dblk_waiter_fini(&waiters[1]);
    dblk_client_leave(client);
    client = NULL;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(next_wait__goes_on_with_the_descriptor_and_not_with_the_canceller),
        TEST(two_at_once__have_one_each),
        TEST(close__ends_each),
    };

    return cmocka_run_group_tests_name("waiter", tests, NULL, NULL);
}
