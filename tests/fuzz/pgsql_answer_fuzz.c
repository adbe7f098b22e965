/* SPDX-License-Identifier: MIT */
/* pgsql_answer_fuzz.c - a server of PostgreSQL's protocol that keeps to the order of its messages,
 * as libpq sees to that, and lies in all of them: how many rows and columns, how long and what in
 * them, errors and notices of any text. Whatever it says, each call ends with one of its results. */
#include "liar.h"

#include <dblock/pgsql.h>

enum { ROOM = 4096, COLUMNS_MAX = 16 };

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

static int read_size(int fd, size_t *ret_size)
{
    uint8_t bytes[4];

    if (!liar_receive(fd, bytes, 4))
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

static int has_come(struct liar *liar, struct liar_connection *connection)
{
    (void)liar;
    (void)connection;
    return 1; /* the client speaks first */
}

static int has_asked(struct liar *liar, struct liar_connection *connection)
{
    struct answer answer = { .size = 0 };
    size_t size;
    char kind;

    atomic_store(&liar->has_granted, 1); /* which row says so is not looked at here */
    if (connection->phase == 0) {
        if (!read_size(connection->fd, &size) || size > 10000 ||
            !liar_skip(connection->fd, size - 4) || size == 16) /* a cancel request */
            return 0;
        connection->phase = 1;
        greet(&answer);
    } else if (!liar_receive(connection->fd, &kind, 1) || !read_size(connection->fd, &size) ||
        !liar_skip(connection->fd, size - 4) ||
        !answer_message(&answer, &liar->script, kind, &connection->n_columns)) {
        return 0;
    }
    return liar_send(connection->fd, answer.bytes, answer.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct liar liar;
    char url[128];

    if (size < 2)
        return 0;
    liar = (struct liar) { .greet = has_come, .answer = has_asked };
    liar.script = (struct script) { bytes + 1, size - 1, 0 };
    liar_start(&liar, ".s.PGSQL.5432");
    (void)snprintf(url, sizeof url, "host=%s user=u dbname=d sslmode=disable", liar.folder);
    liar_use(&liar, dblock_pgsql_driver(), url, bytes[0]);
    liar_stop(&liar);
    return 0;
}
