/* SPDX-License-Identifier: MIT */
/* mysql_liar.c - see mysql_liar.h. */
#include "mysql_liar.h"

#include <time.h>

enum { TYPE_TINY = 1, TYPE_SHORT, TYPE_LONG, TYPE_FLOAT, TYPE_DOUBLE, TYPE_NULL, TYPE_TIMESTAMP,
    TYPE_LONGLONG, TYPE_INT24, TYPE_DATE, TYPE_TIME, TYPE_DATETIME, TYPE_YEAR, TYPE_DECIMAL = 246,
    TYPE_BLOB = 252, TYPE_STRING = 253 };

#define STATUS_AUTOCOMMIT 2u
#define STATUS_MORE_RESULTS 8u
#define STATUS_IN_TRANSACTION 1u
/* long passwords, with a database, 4.1, transactions, secure, multi results, plugins, attributes */
#define CAPABILITIES 0x3EA209u

uint8_t mysql_liar_owner[16];

/* ------------------------------------------------------------------- packets */

static void put(struct reply *reply, const void *bytes, size_t size)
{
    if (size > sizeof reply->bytes - reply->size)
        size = sizeof reply->bytes - reply->size;
    memcpy(reply->bytes + reply->size, bytes, size);
    reply->size += size;
}

static void put_number(struct reply *reply, uint64_t number, size_t size)
{
    uint8_t bytes[8];
    size_t i;

    for (i = 0; i < 8; ++i)
        bytes[i] = (uint8_t)(number >> (8 * i));
    put(reply, bytes, size);
}

static void put_length(struct reply *reply, uint64_t length)
{
    size_t size = length < 251 ? 1 : length < 65536 ? 3 : 9;

    if (size > 1)
        put_number(reply, size == 3 ? 252 : 254, 1);
    put_number(reply, length, size > 1 ? size - 1 : 1);
}

static void put_text(struct reply *reply, const void *text, size_t size)
{
    put_length(reply, size);
    put(reply, text, size);
}

static void begin(struct reply *reply)
{
    reply->begin = reply->size;
    put_number(reply, 0, 3);
    put_number(reply, ++reply->sequence, 1);
}

static void end(struct reply *reply)
{
    size_t size = reply->size - reply->begin - 4;

    if (reply->begin + 4 > sizeof reply->bytes)
        return;
    reply->bytes[reply->begin] = (uint8_t)size;
    reply->bytes[reply->begin + 1] = (uint8_t)(size >> 8);
    reply->bytes[reply->begin + 2] = (uint8_t)(size >> 16);
}

static uint64_t draw_number(struct script *script)
{
    static const uint64_t numbers[] = { 0, 1, 2, 7, (uint64_t)-1, 1ull << 63, ~0ull >> 1,
        1ull << 52, 1ull << 40, 0xFFFFFFFFu, 80036, 1000000 };
    struct timespec now;
    unsigned how = draw(script);
    uint64_t number = 0;
    size_t i;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (how < 96) /* about now, in microseconds */
        return (uint64_t)now.tv_sec * 1000000 + how % 3 * 3000000 - 3000000;
    if (how < 240)
        return numbers[how % 12];
    for (i = 0; i < 8; ++i)
        number = number << 8 | draw(script);
    return number;
}

static unsigned draw_status(struct script *script)
{
    unsigned how = draw(script);

    return how < 160    ? STATUS_AUTOCOMMIT
        : how < 224     ? STATUS_IN_TRANSACTION
        : how < 232     ? STATUS_MORE_RESULTS
                        : how | draw(script) << 8;
}

static void put_ok(struct reply *reply, int is_take)
{
    unsigned how = draw(reply->script);
    uint64_t n_changed = how < 128 ? 1 : how < 224 ? 0 : draw_number(reply->script);

    begin(reply);
    put_number(reply, 0, 1);
    put_length(reply, n_changed);
    put_length(reply, draw_number(reply->script));
    put_number(reply, draw_status(reply->script), 2);
    put_number(reply, 0, 2);
    if (how % 2 == 0)
        put(reply, "Records: 0  Duplicates: 0", 25);
    end(reply);
    if (is_take && n_changed != 0)
        reply->may_grant = 1;
}

static void put_end(struct reply *reply)
{
    begin(reply);
    put_number(reply, 0xFE, 1);
    put_number(reply, 0, 2);
    put_number(reply, draw_status(reply->script), 2);
    end(reply);
}

static void put_error(struct reply *reply)
{
    static const unsigned codes[] = { 1205, 1213, 3572, 1064, 1146, 1142, 1045, 1193, 1290, 1317,
        2006, 2013, 3024, 1969, 1243, 1040, 0, 65535, 1180, 3058 };
    static const char text[] = "\xFF%s\x1b[0m and more of it";
    unsigned how = draw(reply->script);

    begin(reply);
    put_number(reply, 0xFF, 1);
    put_number(reply, codes[how % 20], 2);
    if (how < 240)
        put(reply, "#HY000", how < 220 ? 6 : 3);
    put(reply, text, how % sizeof text);
    end(reply);
}

/* --------------------------------------------------------------- conversation */

void mysql_liar_greet(struct reply *reply)
{
    static const char *const versions[] = { "10.11.6-MariaDB", "8.0.36", "5.5.5-10.11.6-MariaDB",
        "4.0", "", "99999999999.9.9-MariaDB", "%s%n" };
    static const char *const plugins[] = { "mysql_native_password", "caching_sha2_password",
        "mysql_clear_password", "client_ed25519", "../../x", "dialog", "" };
    const char *version = versions[draw(reply->script) % 16 < 9 ? 0 : draw(reply->script) % 7];
    const char *plugin = plugins[draw(reply->script) % 16 < 12 ? 0 : draw(reply->script) % 7];
    unsigned how = draw(reply->script);
    uint32_t changed = how < 240 ? 0 : 1u << draw(reply->script) % 32;
    uint32_t capabilities = CAPABILITIES ^ changed;

    if (how == 239) {
        put_error(reply);
        return;
    }
    reply->sequence = 255;
    begin(reply);
    put_number(reply, 10, 1);
    put(reply, version, strlen(version) + 1);
    put_number(reply, 7, 4);
    put(reply, "12345678", 9);
    put_number(reply, capabilities & 0xFFFF, 2);
    put_number(reply, 45, 1);
    put_number(reply, STATUS_AUTOCOMMIT, 2);
    put_number(reply, capabilities >> 16, 2);
    put_number(reply, 21, 1);
    put(reply, "\0\0\0\0\0\0\0\0\0\0", 10);
    put(reply, "123456789012", 13);
    put(reply, plugin, strlen(plugin) + 1);
    end(reply);
}

int mysql_liar_admit(struct reply *reply)
{
    static const char *const plugins[] = { "mysql_native_password", "mysql_clear_password",
        "caching_sha2_password", "sha256_password", "client_ed25519", "dialog", "../x" };
    unsigned how = draw(reply->script);

    if (how < 224) {
        mysql_liar_agree(reply);
        return 1;
    }
    if (how < 232) {
        put_error(reply);
        return 1;
    }
    begin(reply);
    if (how < 236) { /* more of the same */
        put_number(reply, 1, 1);
        put_number(reply, how % 2 == 0 ? 4 : 3, 1);
    } else { /* another way */
        const char *plugin = plugins[how % 7];

        put_number(reply, 0xFE, 1);
        put(reply, plugin, strlen(plugin) + 1);
        put(reply, "12345678901234567890", 21);
    }
    end(reply);
    return 0;
}

void mysql_liar_agree(struct reply *reply)
{
    begin(reply);
    put_number(reply, 0, 1);
    put_number(reply, 0, 2);
    put_number(reply, STATUS_AUTOCOMMIT, 2);
    put_number(reply, 0, 2);
    end(reply);
}

static unsigned draw_type(struct reply *reply, int is_text)
{
    unsigned how = draw(reply->script);

    if (how < 224)
        return is_text ? TYPE_BLOB : TYPE_LONGLONG;
    return how < 240 ? how - 224 : how + 5 > 255 ? 245 : how + 5;
}

static void put_column(struct reply *reply, unsigned type)
{
    begin(reply);
    put_text(reply, "def", 3);
    put_text(reply, "d", 1);
    put_text(reply, "t", 1);
    put_text(reply, "t", 1);
    put_text(reply, "x", 1);
    put_text(reply, "x", 1);
    put_number(reply, 12, 1);
    put_number(reply, 63, 2);
    put_number(reply, 255, 4);
    put_number(reply, type, 1);
    put_number(reply, 0, 2); /* flags: signed */
    put_number(reply, 0, 1);
    put_number(reply, 0, 2);
    end(reply);
}

void mysql_liar_describe(struct reply *reply, const struct question *question, unsigned id)
{
    unsigned how = draw(reply->script);
    unsigned n_columns = question->n_columns + (how == 254);
    unsigned n_parameters = question->n_parameters + (how == 253);
    unsigned i;

    if (how == 255) {
        put_error(reply);
        return;
    }
    begin(reply);
    put_number(reply, 0, 1);
    put_number(reply, id, 4);
    put_number(reply, n_columns, 2);
    put_number(reply, n_parameters, 2);
    put_number(reply, 0, 3);
    end(reply);
    for (i = 0; i < n_parameters; ++i)
        put_column(reply, TYPE_STRING);
    if (n_parameters > 0)
        put_end(reply);
    for (i = 0; i < n_columns; ++i)
        put_column(reply, TYPE_STRING);
    if (n_columns > 0)
        put_end(reply);
}

/* -------------------------------------------------------------------- values */

static size_t size_of_type(unsigned type)
{
    switch (type) {
    case TYPE_TINY:
        return 1;
    case TYPE_SHORT:
    case TYPE_YEAR:
        return 2;
    case TYPE_LONG:
    case TYPE_INT24:
    case TYPE_FLOAT:
        return 4;
    case TYPE_LONGLONG:
    case TYPE_DOUBLE:
        return 8;
    default:
        return 0; /* a length, and so many bytes */
    }
}

static void put_drawn_text(struct reply *reply, const struct question *question)
{
    static const char *const texts[] = { "x", "dblock:0123456789ab:", "10.11.6-MariaDB", "", "7",
        "h:1", "-9223372036854775808", "dblock:0123456789abcdef0123456789abcdef0123456789abcdef:" };
    unsigned how = draw(reply->script);
    uint8_t bytes[400];
    size_t size, i;

    if (how < 96) {
        put_text(reply, mysql_liar_owner, sizeof mysql_liar_owner);
        if (question->is_take || question->n_columns > 1)
            reply->may_grant = 1;
    } else if (how < 224) {
        put_text(reply, texts[how % 8], strlen(texts[how % 8]));
    } else {
        size = how < 240 ? how - 220 : 255 + how - 240;
        for (i = 0; i < size; ++i)
            bytes[i] = (uint8_t)draw(reply->script);
        put_text(reply, bytes, size);
    }
}

static void put_binary_row(struct reply *reply, const struct question *question,
    const unsigned *types, unsigned n_columns)
{
    uint8_t nulls[(MYSQL_LIAR_COLUMNS + 9) / 8 + 1] = { 0 };
    unsigned i;

    for (i = 0; i < n_columns; ++i)
        if (types[i] == TYPE_NULL || draw(reply->script) > 208)
            nulls[(i + 2) / 8] |= (uint8_t)(1u << ((i + 2) % 8));
    begin(reply);
    put_number(reply, 0, 1);
    put(reply, nulls, (n_columns + 9) / 8);
    for (i = 0; i < n_columns; ++i) {
        size_t size = size_of_type(types[i]);

        if ((nulls[(i + 2) / 8] >> (i + 2) % 8 & 1) != 0)
            continue;
        if (size > 0)
            put_number(reply, draw_number(reply->script), size);
        else
            put_drawn_text(reply, question);
    }
    end(reply);
}

static void put_text_row(
    struct reply *reply, const struct question *question, unsigned n_columns)
{
    unsigned i;

    begin(reply);
    for (i = 0; i < n_columns; ++i) {
        char number[32];
        unsigned how = draw(reply->script);

        if (how > 224) {
            put_number(reply, 0xFB, 1); /* NULL */
        } else if (question->is_text[i % MYSQL_LIAR_COLUMNS] != 0) {
            put_drawn_text(reply, question);
        } else {
            (void)snprintf(
                number, sizeof number, "%lld", (long long)draw_number(reply->script));
            put_text(reply, number, strlen(number));
        }
    }
    end(reply);
}

static void put_rows(struct reply *reply, const struct question *question, int is_binary)
{
    unsigned how = draw(reply->script);
    unsigned n_columns = how < 240 ? question->n_columns : 1 + how % 7;
    unsigned n_rows = how < 192 ? 1 : how % 4;
    unsigned types[MYSQL_LIAR_COLUMNS];
    unsigned i;

    begin(reply);
    put_length(reply, n_columns);
    end(reply);
    for (i = 0; i < n_columns; ++i) {
        types[i] = draw_type(reply, question->is_text[i]);
        put_column(reply, types[i]);
    }
    put_end(reply);
    for (i = 0; i < n_rows; ++i)
        if (is_binary)
            put_binary_row(reply, question, types, n_columns);
        else
            put_text_row(reply, question, n_columns);
    if (how == 191)
        put_error(reply);
    else
        put_end(reply);
}

int mysql_liar_answer(struct reply *reply, const struct question *question, int is_binary)
{
    unsigned how = draw(reply->script);

    if (how == 255)
        return 0;
    if (how > 224) {
        put_error(reply);
    } else if (how == 224) { /* give me that file */
        begin(reply);
        put_number(reply, 0xFB, 1);
        put(reply, MYSQL_LIAR_FILE, sizeof MYSQL_LIAR_FILE - 1);
        end(reply);
    } else if (question->n_columns > 0 && how != 223) {
        put_rows(reply, question, is_binary);
    } else {
        put_ok(reply, question->is_take);
    }
    return 1;
}

int mysql_liar_send(struct reply *reply, int fd)
{
    unsigned how = draw(reply->script);

    if (how > 250 && reply->size > 0) {
        for (how -= 250; how > 0; --how)
            reply->bytes[(draw(reply->script) | draw(reply->script) << 8) % reply->size] =
                (uint8_t)draw(reply->script);
        reply->may_grant = 1;
    }
    return liar_send(fd, reply->bytes, reply->size);
}
