/* SPDX-License-Identifier: MIT */
/* exchange.c - a grant as text, for another process: dblock_lock_export() and
 * dblock_lock_import().
 *
 *     dblock1:STRATEGY:OWNER:TOKEN:NAME
 *
 * OWNER is 32 hex digits, NAME has every byte but letters, digits, '-', '_' and
 * '.' as %XX. The owner is what makes it a capability. */
#include <stdio.h>
#include <string.h>

#include "core/heartbeat.h"
#include "core/hex.h"
#include "core/hold.h"
#include "core/keeper.h"
#include "core/name.h"
#include "core/token.h"

static int is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
        (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
}

static void append_name(char *text, const char *name)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *byte;

    for (byte = (const unsigned char *)name; *byte != 0; ++byte) {
        if (is_plain(*byte)) {
            *text++ = (char)*byte;
        } else {
            *text++ = '%';
            *text++ = digits[*byte >> 4];
            *text++ = digits[*byte & 15];
        }
    }
    *text = 0;
}

static dblock_status write_grant(
    dblock_lock *lock, char *buffer, size_t size, struct dblock_error *error)
{
    int64_t token;
    dblock_status status;
    int length;

    if (buffer == NULL || size < DBLOCK_GRANT_TEXT_SIZE + 3 * lock->subject.name_size)
        return dblock_error_set(error, DBLOCK_E_ARGUMENT, NULL,
            "buffer: less than DBLOCK_GRANT_TEXT_SIZE + 3 * strlen(name) bytes");
    if (lock->strategy->lives_in_connection)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "strategy %s lives in a connection of this process",
            dblock_strategy_name(lock->strategy->id));
    dblk_lock_client(lock->client);
    lock->is_exported = 1; /* from here on it does not go to another thread */
    dblk_unlock_client(lock->client);
    status = dblk_token_get(
        lock, dblk_later(dblk_now_us(), lock->client->settings.io_us), &token, error);
    if (status != DBLOCK_OK)
        return status;
    length = snprintf(buffer, size, "dblock1:%s:%s:%lld:",
        dblock_strategy_name(lock->strategy->id), dblock_lock_owner(lock), (long long)token);
    append_name(buffer + length, lock->subject.name);
    return DBLOCK_OK;
}

dblock_status dblock_lock_export(
    dblock_lock *lock, char *buffer, size_t size, struct dblock_error *reterr)
{
    dblock_status status = dblk_lock_enter(lock, reterr);

    if (status != DBLOCK_OK)
        return status;
    return write_grant(lock, buffer, size, reterr);
}

struct grant_text {
    int strategy;
    unsigned char owner[DBLOCK_ID_SIZE];
    int64_t token;
    char name[DBLOCK_NAME_MAX + 1];
};

static const char *read_owner(const char *text, unsigned char owner[DBLOCK_ID_SIZE])
{
    const char *end = text + 2 * DBLOCK_ID_SIZE;

    return dblk_hex_read_id(text, owner) == 0 && *end == ':' ? end + 1 : NULL;
}

static const char *read_token(const char *text, int64_t *ret_token)
{
    int64_t token = 0;
    int n_digits;

    for (n_digits = 0; text[n_digits] >= '0' && text[n_digits] <= '9'; ++n_digits) {
        if (n_digits == 16)
            return NULL;
        token = token * 10 + (text[n_digits] - '0');
    }
    *ret_token = token;
    return n_digits > 0 && text[n_digits] == ':' ? text + n_digits + 1 : NULL;
}

static int read_name(const char *text, char name[DBLOCK_NAME_MAX + 1])
{
    size_t length = 0;

    while (*text != 0 && length < DBLOCK_NAME_MAX) {
        if (*text == '%') {
            int high = dblk_hex_digit(text[1]);
            int low = high < 0 ? -1 : dblk_hex_digit(text[2]);

            if (low < 0 || (high == 0 && low == 0))
                return -1;
            name[length++] = (char)(high << 4 | low);
            text += 3;
        } else if (is_plain((unsigned char)*text)) {
            name[length++] = *text++;
        } else {
            return -1;
        }
    }
    name[length] = 0;
    return *text == 0 && dblk_text_check(name, DBLOCK_NAME_MAX) == DBLK_TEXT_GOOD ? 0 : -1;
}

static int read_grant(const char *text, struct grant_text *grant)
{
    static const char start[] = "dblock1:";
    int strategy;

    if (strncmp(text, start, strlen(start)) != 0)
        return -1;
    text += strlen(start);
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_INSERT; ++strategy) {
        size_t length = strlen(dblock_strategy_name(strategy));

        if (strncmp(text, dblock_strategy_name(strategy), length) == 0 && text[length] == ':') {
            grant->strategy = strategy;
            text += length + 1;
            text = read_owner(text, grant->owner);
            if (text != NULL)
                text = read_token(text, &grant->token);
            return text != NULL ? read_name(text, grant->name) : -1;
        }
    }
    return -1;
}

/* An object for a grant that another process took; the database has confirmed it. */
static dblock_status adopt(dblock_client *client, const struct grant_text *text,
    const struct dblock_grant *found, const struct dblk_short_result *result,
    dblock_lock **ret_lock, struct dblock_error *reterr)
{
    struct dblk_wish wish;
    dblock_lock *lock;
    dblock_status status = dblk_keeper_ensure(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    memset(&wish, 0, sizeof wish);
    wish.strategy = text->strategy;
    wish.label = "";
    wish.ttl_us = result->answer.remaining_us > 0 ? result->answer.remaining_us : 1;
    lock = dblk_lock_new(client, text->name, &wish);
    if (lock == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    dblk_client_ref(client); /* the lock's */
    memcpy(lock->owner, text->owner, sizeof lock->owner);
    lock->token = found->token;
    lock->is_import = 1;
    lock->is_remote_heartbeat = found->is_heartbeat != 0;
    lock->taken_us = result->sent_us;
    lock->granted_us = dblk_now_us();
    atomic_store(&lock->own_deadline_us,
        dblk_belief_end(result->sent_us, result->answer.remaining_us));
    dblk_lock_client(client);
    dblk_lock_hold(lock);
    dblk_clock_due(client, dblk_lock_deadline(lock));
    dblk_unlock_client(client);
    *ret_lock = lock;
    return DBLOCK_OK;
}

dblock_status dblock_lock_import(dblock_client *client, const char *text, dblock_lock **ret_lock,
    struct dblock_error *reterr)
{
    struct grant_text grant;
    struct dblock_grant found;
    struct dblk_hold_request request;
    struct dblk_short_result result;
    char owner_text[40];
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (text == NULL || ret_lock == NULL) {
        status = dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, NULL, "%s: NULL", text == NULL ? "text" : "ret_lock");
        goto done;
    }
    if (read_grant(text, &grant) != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "a grant begins with dblock1: and is one word; quote \"$grant\" in a shell",
            "text: not a grant of dblock_lock_export()");
        goto done;
    }
    memset(&request, 0, sizeof request);
    request.strategy = grant.strategy;
    request.subject.name = grant.name;
    request.subject.name_size = strlen(grant.name);
    request.grant = &found;
    status = dblk_short(client, 0, 0, dblk_hold_look, &request, &result, reterr);
    if (status != DBLOCK_OK)
        goto done;
    dblock_id_text(grant.owner, owner_text);
    if (result.answer.outcome != DBLOCK_ANSWER_YES || strcmp(found.owner, owner_text) != 0)
        status = DBLOCK_LOST;
    else if (found.token != grant.token)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "text: not a grant of dblock_lock_export(): its token has been changed");
    else
        status = adopt(client, &grant, &found, &result, ret_lock, reterr);
done:
    dblk_client_leave(client);
    return status;
}
