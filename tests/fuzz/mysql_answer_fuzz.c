/* SPDX-License-Identifier: MIT */
/* mysql_answer_fuzz.c - a server of MySQL's protocol that lies: in what it counts, in the rows, in
 * how many columns they have and of which types, in its greeting; that asks for a file of the
 * client, or for the password as it is. What bytes its packets have: mysql_liar.c. */
#include "liar.h"

#include <dblock/mysql.h>

#include "mysql_liar.h"

#define SECRET "hunter2-never-send-me"

enum { /* commands */
    COM_QUERY = 0x03,
    COM_PREPARE = 0x16,
    COM_EXECUTE = 0x17,
    COM_LONG_DATA = 0x18,
    COM_CLOSE = 0x19,
    COM_QUIT = 0x01
};

enum { IS_ASKED_FOR_LOGIN = 1, IS_USED = 2, STATEMENTS_MAX = 256 };

/* What was asked for: of a prepared statement for as long as the client may run it. */
static struct question statements[STATEMENTS_MAX];
static unsigned n_statements;

static int has_come(struct liar *liar, struct liar_connection *connection)
{
    struct reply reply = { .script = &liar->script };

    connection->phase = IS_ASKED_FOR_LOGIN;
    mysql_liar_greet(&reply);
    return mysql_liar_send(&reply, connection->fd);
}

static int holds(const uint8_t *packet, size_t size, const char *text)
{
    size_t length = strlen(text);
    size_t i;

    for (i = 0; i + length <= size; ++i)
        if (memcmp(packet + i, text, length) == 0)
            return 1;
    return 0;
}

/* The owner is what stands behind the name "x" in the values of a take. */
static void find_owner(const uint8_t *packet, size_t size)
{
    static const uint8_t before[] = { 1, 'x', 16 };
    size_t i;

    for (i = 10; i + sizeof before + 16 <= size; ++i)
        if (memcmp(packet + i, before, sizeof before) == 0) {
            memcpy(mysql_liar_owner, packet + i + sizeof before, 16);
            break;
        }
}

static void prepare(struct reply *reply, const uint8_t *packet, size_t size)
{
    unsigned id = n_statements++ % STATEMENTS_MAX;

    mysql_liar_read_question(&statements[id], (const char *)packet + 1, size - 1);
    mysql_liar_describe(reply, &statements[id], id);
}

static int reply_to(struct reply *reply, const uint8_t *packet, size_t size)
{
    struct question question;

    switch (packet[0]) {
    case COM_QUIT:
        return 0;
    case COM_CLOSE:
    case COM_LONG_DATA:
        return 1;
    case COM_PREPARE:
        prepare(reply, packet, size);
        return 1;
    case COM_EXECUTE:
        find_owner(packet, size);
        return mysql_liar_answer(reply, &statements[packet[1] % STATEMENTS_MAX], 1);
    case COM_QUERY:
        mysql_liar_read_question(&question, (const char *)packet + 1, size - 1);
        return mysql_liar_answer(reply, &question, 0);
    default:
        mysql_liar_agree(reply);
        return 1;
    }
}

static int has_asked(struct liar *liar, struct liar_connection *connection)
{
    static uint8_t packet[LIAR_PACKET_MAX];
    struct reply reply = { .script = &liar->script };
    uint8_t head[4];
    size_t size;

    if (!liar_receive(connection->fd, head, 4))
        return 0;
    size = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    if (size > sizeof packet || !liar_receive(connection->fd, packet, size))
        return 0;
    /* a server of this machine may ask for it */
    EXPECT(liar->port == 0 || !holds(packet, size, SECRET));
    EXPECT(!holds(packet, size, MYSQL_LIAR_FILE_TEXT));
    reply.sequence = head[3];
    if (connection->phase == IS_ASKED_FOR_LOGIN) {
        if (mysql_liar_admit(&reply))
            connection->phase = IS_USED;
    } else if (size == 0) { /* "no file for you" */
        mysql_liar_agree(&reply);
    } else if (!reply_to(&reply, packet, size)) {
        return 0;
    }
    if (reply.may_grant)
        atomic_store(&liar->has_granted, 1);
    return mysql_liar_send(&reply, connection->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct liar liar;
    char url[256];

    if (size < 2)
        return 0;
    liar = (struct liar) { .greet = has_come, .answer = has_asked };
    liar.script = (struct script) { bytes + 1, size - 1, 0 };
    n_statements = 0;
    liar_start(&liar, bytes[0] < 128 ? "mysql" : NULL);
    if (liar.port == 0)
        (void)snprintf(url, sizeof url, "mysql://u:" SECRET "@localhost/d?socket=%s", liar.path);
    else
        (void)snprintf(url, sizeof url, "mysql://u:" SECRET "@127.0.0.1:%u/d", liar.port);
    liar_use(&liar, dblock_mysql_driver(), url, bytes[0]);
    liar_stop(&liar);
    return 0;
}
