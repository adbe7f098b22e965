/* SPDX-License-Identifier: MIT */
/* liar.c - see liar.h. */
#include "liar.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <dblock/check.h>
#include <dblock/many.h>

unsigned draw(struct script *script)
{
    if (script->size == 0)
        return 0;
    return script->bytes[script->next++ % script->size];
}

/* ---------------------------------------------------------------- the server */

int liar_receive(int fd, void *bytes, size_t size)
{
    return size == 0 || recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

int liar_skip(int fd, size_t size)
{
    char bytes[256];

    for (; size > 0; size -= size < sizeof bytes ? size : sizeof bytes)
        if (!liar_receive(fd, bytes, size < sizeof bytes ? size : sizeof bytes))
            return 0;
    return 1;
}

int liar_send(int fd, const void *bytes, size_t size)
{
    return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static void hang_up(struct liar_connection *connection)
{
    (void)close(connection->fd);
    connection->fd = -1;
}

static void welcome(struct liar *liar)
{
    struct liar_connection *free_place = NULL;
    int fd = accept(liar->listener, NULL, NULL);
    size_t i;

    for (i = 0; i < LIAR_CONNECTIONS; ++i)
        if (liar->connections[i].fd < 0)
            free_place = &liar->connections[i];
    if (fd < 0)
        return;
    if (free_place == NULL) {
        (void)close(fd);
        return;
    }
    *free_place = (struct liar_connection) { .fd = fd, .number = ++liar->n_greeted };
    if (!liar->greet(liar, free_place))
        hang_up(free_place);
}

static void *run(void *context)
{
    struct liar *liar = context;
    struct pollfd descriptors[LIAR_CONNECTIONS + 2];
    size_t i;

    for (;;) {
        for (i = 0; i < LIAR_CONNECTIONS; ++i)
            descriptors[i] = (struct pollfd) { liar->connections[i].fd, POLLIN, 0 };
        descriptors[i] = (struct pollfd) { liar->listener, POLLIN, 0 };
        descriptors[i + 1] = (struct pollfd) { liar->stop[0], POLLIN, 0 };
        if (poll(descriptors, LIAR_CONNECTIONS + 2, -1) < 0 || descriptors[i + 1].revents != 0)
            break;
        for (i = 0; i < LIAR_CONNECTIONS; ++i)
            if (descriptors[i].revents != 0 &&
                !liar->answer(liar, &liar->connections[i]))
                hang_up(&liar->connections[i]);
        if (descriptors[i].revents != 0)
            welcome(liar);
    }
    for (i = 0; i < LIAR_CONNECTIONS; ++i)
        if (liar->connections[i].fd >= 0)
            hang_up(&liar->connections[i]);
    return NULL;
}

static void listen_locally(struct liar *liar, const char *file)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)snprintf(liar->folder, sizeof liar->folder, "/tmp/dblock-fuzz.%ld", (long)getpid());
    (void)snprintf(liar->path, sizeof liar->path, "%s/%s", liar->folder, file);
    (void)mkdir(liar->folder, 0700);
    (void)unlink(liar->path);
    memcpy(address.sun_path, liar->path, strlen(liar->path) + 1);
    liar->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(bind(liar->listener, (struct sockaddr *)&address, sizeof address) == 0);
}

static void listen_at_port(struct liar *liar)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    liar->path[0] = 0;
    liar->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(bind(liar->listener, (struct sockaddr *)&address, sizeof address) == 0);
    EXPECT(getsockname(liar->listener, (struct sockaddr *)&address, &size) == 0);
    liar->port = ntohs(address.sin_port);
}

void liar_start(struct liar *liar, const char *file)
{
    size_t i;

    for (i = 0; i < LIAR_CONNECTIONS; ++i)
        liar->connections[i].fd = -1;
    if (file != NULL)
        listen_locally(liar, file);
    else
        listen_at_port(liar);
    EXPECT(listen(liar->listener, 16) == 0 && pipe(liar->stop) == 0);
    EXPECT(pthread_create(&liar->thread, NULL, run, liar) == 0);
}

void liar_stop(struct liar *liar)
{
    EXPECT(write(liar->stop[1], "x", 1) == 1);
    EXPECT(pthread_join(liar->thread, NULL) == 0);
    (void)close(liar->listener);
    (void)close(liar->stop[0]);
    (void)close(liar->stop[1]);
    if (liar->path[0] == 0)
        return;
    (void)unlink(liar->path);
    (void)rmdir(liar->folder);
}

/* ---------------------------------------------------------------- the client */

static int on_grant(const struct dblock_grant *grant, void *context)
{
    (void)context;
    EXPECT(memchr(grant->name, 0, sizeof grant->name) != NULL);
    EXPECT(memchr(grant->host, 0, sizeof grant->host) != NULL);
    EXPECT(memchr(grant->label, 0, sizeof grant->label) != NULL);
    return 0;
}

static int on_finding(const struct dblock_finding *finding, void *context)
{
    (void)context;
    EXPECT(finding->id != NULL && finding->text != NULL && finding->remedy != NULL);
    return 0;
}

static void expect_told(dblock_status status, const struct dblock_error *error)
{
    if (status >= 0)
        return;
    EXPECT(error->status == status && error->message[0] != 0);
    EXPECT(memchr(error->message, 0, sizeof error->message) != NULL);
    EXPECT(memchr(error->hint, 0, sizeof error->hint) != NULL);
}

static void use_lock(dblock_lock *lock, unsigned what)
{
    struct dblock_error error;
    int64_t token;

    expect_told(dblock_lock_token(lock, &token, &error), &error);
    expect_told(dblock_confirm(lock, &error), &error);
    if (what / 32 % 2 == 0)
        expect_told(dblock_extend(lock, 5000, &error), &error);
    expect_told(dblock_release(lock, &error), &error);
    dblock_lock_free(lock);
}

static void use_one(struct liar *liar, dblock_client *client, unsigned what)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;

    options.strategy = DBLOCK_LEASE + (int)(what % 4);
    options.busy = &busy;
    options.wait_ms = what / 64 % 2 == 0 ? 0 : 5;
    if (what / 32 % 2 == 0 && options.strategy <= DBLOCK_INSERT)
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    status = dblock_acquire(client, "x", &options, &lock, &error);
    expect_told(status, &error);
    EXPECT((status == DBLOCK_OK) == (lock != NULL));
    if (lock == NULL)
        return;
    EXPECT(options.strategy > DBLOCK_INSERT || atomic_load(&liar->has_granted));
    use_lock(lock, what);
}

static void use_many(dblock_client *client, unsigned what)
{
    static const char *const names[] = { "x", "y", "z" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[3] = { NULL, NULL, NULL };
    struct dblock_error error;
    dblock_status status;
    size_t i;

    options.strategy = DBLOCK_LEASE + (int)(what % 2);
    status = dblock_acquire_many(client, names, 3, &options, locks, &error);
    expect_told(status, &error);
    if (status != DBLOCK_OK)
        return;
    expect_told(dblock_release_many(locks, 3, &error), &error);
    for (i = 0; i < 3; ++i)
        dblock_lock_free(locks[i]);
}

void liar_use(struct liar *liar, const dblock_driver *driver, const char *url, unsigned what)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;

    config.connect_timeout_ms = 100;
    config.io_timeout_ms = 20;
    EXPECT(dblock_open(driver, url, &config, &client, &error) == DBLOCK_OK);
    use_one(liar, client, what);
    if (what / 4 % 2 == 0)
        expect_told(dblock_list(client, NULL, on_grant, NULL, &error), &error);
    else
        use_many(client, what);
    if (what / 8 % 2 == 0)
        expect_told(dblock_inspect(client, "x", DBLOCK_LEASE + (int)(what % 4), &grant, &error),
            &error);
    else if (what % 4 == 0)
        expect_told(dblock_check(client, on_finding, NULL, &error), &error);
    if (what / 16 % 2 == 0)
        expect_told(dblock_break(client, "x", DBLOCK_LEASE, 0, &error), &error);
    dblock_close(client);
}
