/* SPDX-License-Identifier: MIT */
/* redis_hiredis.c - the lock of Redis in C: SET with NX and PX, and a script that deletes
 * what is there only if it is ours; each one round trip, and loaded once. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"

enum { SHA1_SIZE = 40 };

struct redis {
    redisContext *context;
    char drop[SHA1_SIZE + 1];
    unsigned long n;
    char version[40];
};

static const char script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
    "return 0";

static int complain(const struct redis *redis, redisReply *reply)
{
    (void)fprintf(stderr, "peers: redis: %s\n",
        reply != NULL && reply->str != NULL ? reply->str : redis->context->errstr);
    if (reply != NULL)
        freeReplyObject(reply);
    return -1;
}

static int set_up(struct redis *redis)
{
    redisReply *reply = redisCommand(redis->context, "SCRIPT LOAD %s", script);
    const char *version;

    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != SHA1_SIZE)
        return complain(redis, reply);
    memcpy(redis->drop, reply->str, SHA1_SIZE);
    freeReplyObject(reply);
    reply = redisCommand(redis->context, "INFO server");
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        return complain(redis, reply);
    version = strstr(reply->str, "redis_version:");
    if (version != NULL)
        (void)snprintf(redis->version, sizeof redis->version, "%.*s",
            (int)strcspn(version + 14, "\r\n"), version + 14);
    freeReplyObject(reply);
    return 0;
}

static void *open_raw(const char *variable)
{
    const char *address = getenv(variable);
    struct redis *redis = calloc(1, sizeof *redis);
    char host[64];
    int port;

    if (redis == NULL || address == NULL || sscanf(address, "%63[^:]:%d", host, &port) != 2)
        return NULL;
    redis->context = redisConnect(host, port);
    if (redis->context == NULL || redis->context->err != 0 || set_up(redis) != 0)
        return NULL;
    return redis;
}

static int take(struct redis *redis)
{
    redisReply *reply =
        redisCommand(redis->context, "SET bench-hiredis %lu NX PX 30000", redis->n);

    if (reply == NULL || reply->type != REDIS_REPLY_STATUS)
        return complain(redis, reply);
    freeReplyObject(reply);
    return 0;
}

static int pair(void *context)
{
    struct redis *redis = context;
    redisReply *reply;

    ++redis->n;
    if (take(redis) != 0)
        return -1;
    reply = redisCommand(redis->context, "EVALSHA %s 1 bench-hiredis %lu", redis->drop, redis->n);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        return complain(redis, reply);
    freeReplyObject(reply);
    return 0;
}

static void about(void *context, char *ret_text, size_t size)
{
    const struct redis *redis = context;

    (void)snprintf(ret_text, size, "hiredis %d.%d.%d, Redis %s", HIREDIS_MAJOR, HIREDIS_MINOR,
        HIREDIS_PATCH, redis->version);
}

const struct side side_hiredis = { open_raw, pair, about };
