/* SPDX-License-Identifier: MIT */
/* pgsql_answer_fuzz.c - a server of PostgreSQL's protocol that keeps to the order of its messages, as
 * libpq sees to that, and lies in all of them: how many rows and columns, how long and what in them,
 * errors and notices of any text. Whatever it says, each call ends and answers one of its results. */
#include "fuzz.h"

#include <dblock/check.h>
#include <dblock/dblock.h>
#include <dblock/pgsql.h>

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM = 4096, COLUMNS_MAX = 16 };

/* What the server says next: the bytes of the input, from the begin again at their end. */
struct script {
    const uint8_t *bytes;
    size_t size;
    size_t next;
};

struct server {
    int listener;
    int stop[2];
    struct script script;
    char folder[64];
    pthread_t thread;
};

static unsigned draw(struct script *script)
{
    if (script->size == 0)
        return 0;
    return script->bytes[script->next++ % script->size];
}

/* A message that is being written. */
struct answer {
    uint8_t bytes[ROOM];
    size_t size;
    size_t begin;
};

static void put(struct answer *answer, const void *bytes, size_t size)
{
    if (size > ROOM - answer->size)
        size = ROOM - answer->size;
    memcpy(answer->bytes + answer->size, bytes, size);
    answer->size += size;
}

static void put_number(struct answer *answer, unsigned number, size_t size)
{
    uint8_t bytes[4] = { (uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
        (uint8_t)number };

    put(answer, bytes + 4 - size, size);
}

static void begin(struct answer *answer, char kind)
{
    put(answer, &kind, 1);
    answer->begin = answer->size;
    put_number(answer, 0, 4);
}

static void end(struct answer *answer)
{
    size_t size = answer->size - answer->begin;
    size_t i;

    for (i = 0; i < 4 && answer->begin + i < ROOM; ++i)
        answer->bytes[answer->begin + i] = (uint8_t)(size >> (24 - 8 * i));
}

static void put_error(struct answer *answer, struct script *script, char kind)
{
    static const char *const severities[] = { "ERROR", "FATAL", "PANIC", "NOTICE", "" };
    static const char *const states[] = { "55P03", "57014", "57P01", "40001", "40P01", "25006",
        "42P01", "42501", "LK001", "23505", "08006", "53300", "XX000", "", "\x01" };
    static const char fields[] = "SVCMDH";
    size_t i;

    begin(answer, kind);
    for (i = 0; i < sizeof fields - 1; ++i) {
        const char *text = i < 2 ? severities[draw(script) % 5]
            : i == 2             ? states[draw(script) % 15]
                                 : "\xFF%s\x1b[0m and more";

        if (draw(script) % 8 == 0)
            continue;
        put(answer, &fields[i], 1);
        put(answer, text, strlen(text) + 1);
    }
    put_number(answer, 0, 1);
    end(answer);
}

static void put_columns(struct answer *answer, unsigned n_columns)
{
    unsigned i;

    begin(answer, 'T');
    put_number(answer, n_columns, 2);
    for (i = 0; i < n_columns; ++i) {
        put(answer, "x", 2);
        put_number(answer, 0, 4); /* table */
        put_number(answer, 0, 2); /* column of it */
        put_number(answer, 20, 4); /* type */
        put_number(answer, 8, 2);
        put_number(answer, 0, 4);
        put_number(answer, 1, 2); /* binary */
    }
    end(answer);
}

static void put_row(struct answer *answer, struct script *script, unsigned n_columns)
{
    static const unsigned sizes[] = { 8, 8, 8, 4, 1, 0, 16, 3 };
    unsigned i;

    begin(answer, 'D');
    put_number(answer, n_columns, 2);
    for (i = 0; i < n_columns; ++i) {
        unsigned how = draw(script);
        unsigned size = how < 128 ? sizes[how % 8] : how < 224 ? how % 32 : 0;

        if (how >= 240) {
            put_number(answer, 0xFFFFFFFFu, 4); /* NULL */
            continue;
        }
        put_number(answer, size, 4);
        for (; size > 0; --size)
            put_number(answer, draw(script), 1);
    }
    end(answer);
}

/* The answers to one message of the client. 0: hang up. */
static int answer_message(
    struct answer *answer, struct script *script, char kind, unsigned *n_columns)
{
    unsigned how = draw(script);

    if (how == 255)
        return 0;
    if (how == 254)
        put_error(answer, script, 'N');
    switch (kind) {
    case 'P':
        begin(answer, '1');
        end(answer);
        break;
    case 'B':
        begin(answer, '2');
        end(answer);
        break;
    case 'D':
        *n_columns = how < 32 ? 0 : how % COLUMNS_MAX;
        if (*n_columns == 0)
            begin(answer, 'n'), end(answer);
        else
            put_columns(answer, *n_columns);
        break;
    case 'E':
        if (how < 16) {
            put_error(answer, script, 'E');
            break;
        }
        if (*n_columns > 0)
            for (how %= 4; how > 0; --how)
                put_row(answer, script, *n_columns);
        begin(answer, 'C');
        put(answer, how % 2 == 0 ? "COMMIT" : "BEGIN", how % 2 == 0 ? 7 : 6);
        end(answer);
        break;
    case 'S':
    case 'Q':
        begin(answer, 'Z');
        put(answer, how % 8 == 0 ? "T" : how % 8 == 1 ? "E" : "I", 1);
        end(answer);
        break;
    default:
        break;
    }
    return kind != 'X';
}

static int receive(int fd, void *bytes, size_t size)
{
    return recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

static int skip(int fd, size_t size)
{
    char bytes[256];

    for (; size > 0; size -= size < sizeof bytes ? size : sizeof bytes)
        if (!receive(fd, bytes, size < sizeof bytes ? size : sizeof bytes))
            return 0;
    return 1;
}

static int read_size(int fd, size_t *ret_size)
{
    uint8_t bytes[4];

    if (!receive(fd, bytes, 4))
        return 0;
    *ret_size = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    return *ret_size >= 4;
}

static void greet(struct answer *answer)
{
    begin(answer, 'R');
    put_number(answer, 0, 4);
    end(answer);
    begin(answer, 'S');
    put(answer, "server_version\0" "15.0", 20);
    end(answer);
    begin(answer, 'K');
    put_number(answer, 4711, 4);
    put_number(answer, 17, 4);
    end(answer);
    begin(answer, 'Z');
    put(answer, "I", 1);
    end(answer);
}

/* One connection, of which the client does what it likes. */
static void serve(struct server *server, int fd)
{
    struct answer answer = { .size = 0 };
    unsigned n_columns = 0;
    size_t size;
    char kind;

    if (!read_size(fd, &size) || size > 10000 || !skip(fd, size - 4))
        return;
    if (size == 16) /* a cancel request */
        return;
    greet(&answer);
    for (;;) {
        struct pollfd descriptors[2] = { { fd, POLLIN, 0 }, { server->stop[0], POLLIN, 0 } };

        if (answer.size > 0 && send(fd, answer.bytes, answer.size, MSG_NOSIGNAL) < 0)
            return;
        answer.size = 0;
        if (poll(descriptors, 2, -1) < 0 || descriptors[1].revents != 0)
            return;
        if (!receive(fd, &kind, 1) || !read_size(fd, &size) || !skip(fd, size - 4) ||
            !answer_message(&answer, &server->script, kind, &n_columns))
            return;
    }
}

static void *run(void *context)
{
    struct server *server = context;

    for (;;) {
        struct pollfd descriptors[2] = { { server->listener, POLLIN, 0 },
            { server->stop[0], POLLIN, 0 } };
        int fd;

        if (poll(descriptors, 2, -1) < 0 || descriptors[1].revents != 0)
            return NULL;
        fd = accept(server->listener, NULL, NULL);
        if (fd >= 0) {
            serve(server, fd);
            (void)close(fd);
        }
    }
}

static void start(struct server *server)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)snprintf(server->folder, sizeof server->folder, "/tmp/dblock-fuzz.%ld", (long)getpid());
    (void)mkdir(server->folder, 0700);
    (void)snprintf(
        address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", server->folder);
    (void)unlink(address.sun_path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(server->listener >= 0 && pipe(server->stop) == 0);
    EXPECT(bind(server->listener, (struct sockaddr *)&address, sizeof address) == 0);
    EXPECT(listen(server->listener, 16) == 0);
    EXPECT(pthread_create(&server->thread, NULL, run, server) == 0);
}

static void stop(struct server *server)
{
    char path[96];

    EXPECT(write(server->stop[1], "x", 1) == 1);
    EXPECT(pthread_join(server->thread, NULL) == 0);
    (void)close(server->listener);
    (void)close(server->stop[0]);
    (void)close(server->stop[1]);
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", server->folder);
    (void)unlink(path);
    (void)rmdir(server->folder);
}

static int on_grant(const struct dblock_grant *grant, void *context)
{
    (void)context;
    EXPECT(memchr(grant->name, 0, sizeof grant->name) != NULL);
    EXPECT(memchr(grant->host, 0, sizeof grant->host) != NULL);
    EXPECT(memchr(grant->label, 0, sizeof grant->label) != NULL);
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

static void use(dblock_client *client, unsigned what)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;
    int64_t token;

    options.strategy = DBLOCK_LEASE + (int)(what % 4);
    options.busy = &busy;
    status = dblock_acquire(client, "x", &options, &lock, &error);
    expect_told(status, &error);
    EXPECT((status == DBLOCK_OK) == (lock != NULL));
    if (lock != NULL) {
        status = dblock_lock_token(lock, &token, &error);
        expect_told(status, &error);
        status = dblock_confirm(lock, &error);
        expect_told(status, &error);
        status = dblock_release(lock, &error);
        expect_told(status, &error);
        dblock_lock_free(lock);
    }
    if (what / 4 % 2 == 0)
        expect_told(status = dblock_list(client, NULL, on_grant, NULL, &error), &error);
    if (what / 8 % 2 == 0)
        expect_told(
            status = dblock_inspect(client, "x", options.strategy, &busy, &error), &error);
    if (what / 16 % 2 == 0)
        expect_told(status = dblock_break(client, "x", DBLOCK_LEASE, 0, &error), &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct server server = { .listener = -1 };
    struct dblock_error error;
    dblock_client *client = NULL;
    char url[128];

    if (size < 2)
        return 0;
    server.script = (struct script) { bytes + 1, size - 1, 0 };
    start(&server);
    config.connect_timeout_ms = 100;
    config.io_timeout_ms = 20;
    (void)snprintf(url, sizeof url, "host=%s user=u dbname=d sslmode=disable", server.folder);
    EXPECT(dblock_open(dblock_pgsql_driver(), url, &config, &client, &error) == DBLOCK_OK);
    use(client, bytes[0]);
    dblock_close(client);
    stop(&server);
    return 0;
}
