/* SPDX-License-Identifier: MIT */
/* mysql_wire_test.c - what the MySQL driver says of answers that are lost on the way, or come
 * in pieces: the truth, and in time. Over TCP and over a local socket, as the driver waits
 * for them in different ways. Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <mysql.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u
#define YES DBLOCK_ANSWER_YES

/* How much later than asked a call may end, beside what a busy machine costs; less than the next
 * whole second, to which a client library might round it. Oracle's client library counts in its own
 * time-outs, in whole seconds. */
#ifdef MARIADB_BASE_VERSION
#define LATE_MS 0u
#else
#define LATE_MS 6000u
#endif

static struct mysql_fixture fixture;
static struct dblock_connection *mine;

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    mine = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    return mine != NULL && mysql_begin(&fixture, mine, "mine", 60 * SECOND) == YES ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fixture.driver->connection.close(mine, DBLOCK_CLOSE_POLITE);
    mysql_fixture_close(&fixture);
    return 0;
}

/* A proxy in front of the server that can swallow either direction, pass answers on byte by
 * byte, or cut. */
struct proxy {
    int listener;
    char path[100]; /* of a local listener; else "" */
    atomic_int swallow_requests, swallow_answers, cut;
    atomic_int drip_ms; /* between two bytes of an answer */
    struct sockaddr_in server;
    pthread_t thread;
};

static void pass_on(struct proxy *proxy, int fd, int is_answer, const char *bytes, size_t size)
{
    unsigned int drip_ms = is_answer ? (unsigned int)atomic_load(&proxy->drip_ms) : 0;
    size_t i;

    if (drip_ms == 0) {
        (void)!write(fd, bytes, size);
        return;
    }
    for (i = 0; i < size && !atomic_load(&proxy->cut); ++i) {
        (void)!send(fd, bytes + i, 1, MSG_NOSIGNAL);
        test_pass_ms(drip_ms);
    }
}

static void *run_proxy(void *argument)
{
    struct proxy *proxy = argument;
    int client = accept(proxy->listener, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    char bytes[16384];

    if (client < 0 ||
        connect(server, (struct sockaddr *)&proxy->server, sizeof proxy->server) != 0)
        return NULL;
    for (;;) {
        struct pollfd fds[2] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
        int i;

        if (atomic_load(&proxy->cut))
            break;
        if (poll(fds, 2, 10) <= 0)
            continue;
        for (i = 0; i < 2; ++i) {
            ssize_t n;

            if (fds[i].revents == 0)
                continue;
            n = read(fds[i].fd, bytes, sizeof bytes);
            if (n <= 0) {
                (void)close(client);
                (void)close(server);
                return NULL;
            }
            if (!atomic_load(i == 0 ? &proxy->swallow_requests : &proxy->swallow_answers))
                pass_on(proxy, i == 0 ? server : client, i == 1, bytes, (size_t)n);
        }
    }
    (void)close(client);
    (void)close(server);
    return NULL;
}

static void listen_locally(struct proxy *proxy, char *url, size_t size)
{
    const char *folder = getenv("TMPDIR");
    struct sockaddr_un address;

    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    (void)snprintf(proxy->path, sizeof proxy->path, "%s/dblock-wire-%ld",
        folder != NULL ? folder : "/tmp", (long)getpid());
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", proxy->path);
    (void)unlink(proxy->path);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, sizeof address), 0);
    (void)snprintf(strrchr(url, '@'), size - (size_t)(strrchr(url, '@') - url),
        "@localhost/%s?socket=%s", mysql_fixture_database(&fixture), proxy->path);
}

static void listen_by_tcp(struct proxy *proxy, char *url, size_t size)
{
    struct sockaddr_in address;
    socklen_t address_size = sizeof address;

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, address_size), 0);
    assert_int_equal(
        getsockname(proxy->listener, (struct sockaddr *)&address, &address_size), 0);
    (void)snprintf(strrchr(url, ':'), size - (size_t)(strrchr(url, ':') - url), ":%u/%s",
        ntohs(address.sin_port), mysql_fixture_database(&fixture));
}

static struct dblock_connection *connect_by(
    struct proxy *proxy, int is_local, struct dblock_target **ret_target)
{
    struct dblock_connection *connection;
    char url[MYSQL_FIXTURE_URL_MAX];

    memset(proxy, 0, sizeof *proxy);
    (void)mysql_fixture_url(&fixture, url, NULL, NULL, NULL);
    if (is_local)
        listen_locally(proxy, url, sizeof url);
    else
        listen_by_tcp(proxy, url, sizeof url);
    assert_int_equal(listen(proxy->listener, 5), 0);
    proxy->server.sin_family = AF_INET;
    proxy->server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->server.sin_port = htons((uint16_t)mysql_fixture_port(&fixture));
    assert_int_equal(pthread_create(&proxy->thread, NULL, run_proxy, proxy), 0);
    *ret_target = mysql_fixture_target(&fixture, url);
    connection = mysql_fixture_connect_to(&fixture, *ret_target, DBLOCK_ROLE_SHORT);
    assert_non_null(connection);
    return connection;
}

static void end_proxy(
    struct proxy *proxy, struct dblock_connection *connection, struct dblock_target *target)
{
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_ABORT);
    atomic_store(&proxy->cut, 1);
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->listener);
    if (proxy->path[0] != 0)
        (void)unlink(proxy->path);
    fixture.driver->target_close(target);
}

static dblock_status take_within(struct dblock_connection *connection, const char *name,
    const char *owner, uint64_t limit_us)
{
    struct dblock_take take = mysql_take_of(name, owner, NULL, 60 * SECOND);

    mysql_fixture_limit(&fixture, limit_us, -1);
    return fixture.driver->lease.take(
        connection, &fixture.call, &take, NULL, &fixture.answer, &fixture.error);
}

static void lost_answers__are_uncertain_and_in_time(void **state)
{
    struct dblock_connection *connection;
    struct dblock_subject subject = mysql_subject("lost");
    struct dblock_target *target;
    struct proxy proxy;
    uint64_t begun;

    connection = connect_by(&proxy, *(const int *)*state, &target);
    assert_int_equal(take_within(connection, "warm", "warm", SECOND), DBLOCK_OK);
    atomic_store(&proxy.swallow_answers, 1);
    begun = test_now_ms();
    assert_int_equal(take_within(connection, "lost", "lost", 300000), DBLOCK_E_UNCERTAIN);
    assert_true(test_now_ms() - begun >= 290 && test_now_ms() - begun < 900 + LATE_MS);
    assert_false(fixture.driver->connection.is_alive(connection));
    /* it was done all the same */
    assert_int_equal(mysql_look(&fixture, mine, DBLOCK_LEASE, "lost"), YES);
    /* nothing more is sent on that connection */
    assert_int_equal(take_within(connection, "lost2", "lost", SECOND), DBLOCK_E_CONNECTION);
    end_proxy(&proxy, connection, target);
    assert_int_equal(mysql_drop(&fixture, mine, DBLOCK_LEASE, "lost", "lost", 0), YES);
    assert_int_equal(mysql_drop(&fixture, mine, DBLOCK_LEASE, "warm", "warm", 0), YES);

    /* a read whose answer is lost had no effect */
    connection = connect_by(&proxy, *(const int *)*state, &target);
    assert_int_equal(mysql_look(&fixture, connection, DBLOCK_LEASE, "lost"), DBLOCK_ANSWER_NO);
    atomic_store(&proxy.swallow_answers, 1);
    mysql_fixture_limit(&fixture, 200000, -1);
    assert_int_equal(fixture.driver->lease.look(connection, &fixture.call, &subject,
                         &fixture.grant, &fixture.answer, &fixture.error),
        DBLOCK_E_CONNECTION);
    end_proxy(&proxy, connection, target);

    /* swallowed on the way there: nobody can know */
    connection = connect_by(&proxy, *(const int *)*state, &target);
    assert_int_equal(take_within(connection, "warm", "warm2", SECOND), DBLOCK_OK);
    assert_int_equal(mysql_drop(&fixture, connection, DBLOCK_LEASE, "warm", "warm2", 0), YES);
    atomic_store(&proxy.swallow_requests, 1);
    begun = test_now_ms();
    assert_int_equal(take_within(connection, "lost", "lost", 1400000), DBLOCK_E_UNCERTAIN);
    assert_true(test_now_ms() - begun >= 1390 && test_now_ms() - begun < 1900 + LATE_MS);
    assert_int_equal(mysql_look(&fixture, mine, DBLOCK_LEASE, "lost"), DBLOCK_ANSWER_NO);
    end_proxy(&proxy, connection, target);

    /* the server is seen gone before anything is sent */
    connection = connect_by(&proxy, *(const int *)*state, &target);
    atomic_store(&proxy.cut, 1);
    test_pass_ms(100);
    assert_int_equal(take_within(connection, "lost", "lost", SECOND), DBLOCK_E_CONNECTION);
    assert_false(fixture.driver->connection.is_alive(connection));
    end_proxy(&proxy, connection, target);

    /* no time: nothing is sent, and the connection stays */
    assert_int_equal(take_within(mine, "lost", "lost", 0), DBLOCK_E_CONNECTION);
    assert_true(fixture.driver->connection.is_alive(mine));
}

/* However small the pieces: the deadline is that of the whole answer. */
static void answers_in_pieces__are_read_or_given_up_in_time(void **state)
{
    struct dblock_target *target;
    struct dblock_connection *connection;
    struct proxy proxy;
    uint64_t begun;

    connection = connect_by(&proxy, *(const int *)*state, &target);
    assert_int_equal(take_within(connection, "pieces", "pieces", SECOND), DBLOCK_OK);
    atomic_store(&proxy.drip_ms, 1);
    assert_int_equal(mysql_look(&fixture, connection, DBLOCK_LEASE, "pieces"), YES);
    assert_int_equal(mysql_drop(&fixture, connection, DBLOCK_LEASE, "pieces", "pieces", 0), YES);
    atomic_store(&proxy.drip_ms, 40);
    begun = test_now_ms();
    assert_int_equal(take_within(connection, "pieces", "again", 300000), DBLOCK_E_UNCERTAIN);
    assert_true(test_now_ms() - begun >= 290 && test_now_ms() - begun < 900 + LATE_MS);
    assert_false(fixture.driver->connection.is_alive(connection));
    end_proxy(&proxy, connection, target);
    assert_int_equal(mysql_drop(&fixture, mine, DBLOCK_LEASE, "pieces", "again", 0), YES);
}

int main(void)
{
    static int by_tcp = 0;
    static int locally = 1;
    const struct CMUnitTest tests[] = {
        { "tcp: lost_answers__are_uncertain_and_in_time",
            lost_answers__are_uncertain_and_in_time, NULL, NULL, &by_tcp },
        { "local: lost_answers__are_uncertain_and_in_time",
            lost_answers__are_uncertain_and_in_time, NULL, NULL, &locally },
        { "tcp: answers_in_pieces__are_read_or_given_up_in_time",
            answers_in_pieces__are_read_or_given_up_in_time, NULL, NULL, &by_tcp },
        { "local: answers_in_pieces__are_read_or_given_up_in_time",
            answers_in_pieces__are_read_or_given_up_in_time, NULL, NULL, &locally },
    };

    return cmocka_run_group_tests_name("mysql_wire", tests, set_up, tear_down);
}
