/* SPDX-License-Identifier: MIT */
/* options.c - see options.h. */
#include "core/options.h"

#include <dblock/sys/driver.h>
#include <inttypes.h>
#include <string.h>

#include "core/environment.h"
#include "core/layout.h"
#include "core/name.h"
#include "strategy/strategy.h"

static dblock_status check_size(size_t given_size, const char *initializer, const char *what,
    struct dblock_error *reterr)
{
    if (dblk_struct_size_is_good(given_size))
        return DBLOCK_OK;
    return dblock_error_set(
        reterr, DBLOCK_E_ARGUMENT, initializer, "%s: struct_size is %zu", what, given_size);
}

dblock_status dblk_struct_read(const void *source, void *target, size_t known_size,
    const char *what, struct dblock_error *reterr)
{
    const unsigned char *bytes = source;
    size_t given_size;
    size_t i;
    dblock_status status;

    memcpy(&given_size, source, sizeof given_size);
    status = check_size(given_size,
        "begin with the struct's initializer, as in `struct dblock_options options = "
        "DBLOCK_OPTIONS_INIT`",
        what, reterr);
    if (status != DBLOCK_OK)
        return status;
    for (i = known_size; i < given_size; ++i)
        if (bytes[i] != 0)
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
                "link with a newer libdblock, or leave that member zero",
                "%s: a member is set that libdblock %s does not know", what, dblock_version());
    memset(target, 0, known_size);
    memcpy(target, source, given_size < known_size ? given_size : known_size);
    return DBLOCK_OK;
}

dblock_status dblk_struct_write(void *target, const void *source, size_t known_size,
    const char *what, struct dblock_error *reterr)
{
    size_t given_size;
    dblock_status status;

    memcpy(&given_size, target, sizeof given_size);
    status = check_size(given_size,
        "begin with the struct's initializer, as in `struct dblock_grant grant = DBLOCK_GRANT_INIT`",
        what, reterr);
    if (status != DBLOCK_OK)
        return status;
    memcpy((unsigned char *)target + sizeof given_size,
        (const unsigned char *)source + sizeof given_size,
        (given_size < known_size ? given_size : known_size) - sizeof given_size);
    return DBLOCK_OK;
}

uint64_t dblk_ttl_class(uint64_t ttl_us)
{
    static const unsigned seconds[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200,
        21600, 86400 };
    uint64_t class_us = ttl_us;
    size_t i;

    for (i = 0; i < sizeof seconds / sizeof seconds[0]; ++i) {
        if (seconds[i] * UINT64_C(1000000) > ttl_us)
            break;
        class_us = seconds[i] * UINT64_C(1000000);
    }
    return class_us;
}

static dblock_status check_time(
    uint64_t time_ms, uint64_t least_ms, const char *what, struct dblock_error *reterr)
{
    if (time_ms < least_ms)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "%s: %llu ms is less than %llu ms", what, (unsigned long long)time_ms,
            (unsigned long long)least_ms);
    if (time_ms > DBLK_TEN_YEARS_MS)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "it is in milliseconds, and unsigned: a negative number becomes a huge one",
            "%s: more than ten years", what);
    return DBLOCK_OK;
}

static dblock_status check_label(const char *label, const char *what, struct dblock_error *reterr)
{
    if (label == NULL || dblk_text_check(label, DBLOCK_LABEL_MAX) == DBLK_TEXT_GOOD ||
        label[0] == 0)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
        "%s: not UTF-8, or longer than %d bytes", what, DBLOCK_LABEL_MAX);
}

dblock_status dblk_settings_resolve(const struct dblock_config *config,
    struct dblk_settings *ret_settings, struct dblock_error *reterr)
{
    struct dblock_config given = DBLOCK_CONFIG_INIT;
    dblock_status status = DBLOCK_OK;

    if (config != NULL)
        status = dblk_struct_read(config, &given, sizeof given, "config", reterr);
    if (status == DBLOCK_OK && given.connect_timeout_ms != 0)
        status = check_time(given.connect_timeout_ms, 1, "config.connect_timeout_ms", reterr);
    if (status == DBLOCK_OK && given.io_timeout_ms != 0)
        status = check_time(given.io_timeout_ms, 1, "config.io_timeout_ms", reterr);
    if (status == DBLOCK_OK && given.outage_ms != DBLOCK_FOREVER)
        status = check_time(given.outage_ms, 0, "config.outage_ms", reterr);
    if (status == DBLOCK_OK && given.ttl_ms != 0)
        status = check_time(given.ttl_ms, DBLK_TTL_MIN_MS, "config.ttl_ms", reterr);
    if (status == DBLOCK_OK)
        status = check_label(given.label, "config.label", reterr);
    if (status == DBLOCK_OK && given.schema != NULL && given.schema[0] == 0)
        status = dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, "leave it NULL for the usual one", "config.schema: empty");
    if (status != DBLOCK_OK)
        return status;
    if (given.strategy != DBLOCK_STRATEGY_DEFAULT && dblk_strategy_of(given.strategy) == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "config.strategy: %d is none of DBLOCK_LEASE, INSERT, ROW, ADVISORY",
            (int)given.strategy);
    memset(ret_settings, 0, sizeof *ret_settings);
    if (given.label != NULL)
        dblock_text_copy(ret_settings->label, sizeof ret_settings->label, given.label);
    ret_settings->connect_us =
        dblk_ms(given.connect_timeout_ms != 0 ? given.connect_timeout_ms : 5000);
    ret_settings->io_us = dblk_ms(given.io_timeout_ms != 0 ? given.io_timeout_ms : 10000);
    ret_settings->outage_us = dblk_ms(given.outage_ms);
    ret_settings->ttl_us = dblk_ms(given.ttl_ms != 0 ? given.ttl_ms : 30000);
    ret_settings->strategy = given.strategy != 0 ? given.strategy : DBLOCK_LEASE;
    ret_settings->connections_max = given.connections_max != 0 ? given.connections_max : 8;
    ret_settings->on_trace = given.on_trace;
    ret_settings->trace_context = given.trace_context;
    return DBLOCK_OK;
}

static dblock_status refuse_later(const struct dblock_options *given, struct dblock_error *reterr)
{
    const unsigned known =
        DBLOCK_FAIR | DBLOCK_FENCED | DBLOCK_REENTRANT | DBLOCK_QUIET_OK;
    const char *what = NULL;

    if ((given->flags & ~known) != 0)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "options.flags: a bit that libdblock %s does not know", dblock_version());
    if (given->reserved != 0 || given->reserved2 != 0)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "leave it zero",
            "options.reserved: has no meaning in libdblock %s", dblock_version());
    if (given->mode == DBLOCK_SHARED)
        what = "options.mode: shared locks";
    else if (given->permits != 0)
        what = "options.permits: semaphores";
    else if ((given->flags & DBLOCK_REENTRANT) != 0 || given->reentrant_owner != NULL)
        what = "options.flags: reentrant locks (DBLOCK_REENTRANT)";
    else if ((given->flags & DBLOCK_QUIET_OK) != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "leave it out",
            "options.flags: DBLOCK_QUIET_OK is for dblock_acquire_some()");
    if (what != NULL)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "leave it zero",
            "%s are not in libdblock %s", what, dblock_version());
    return DBLOCK_OK;
}

/* Does it ask for nothing but a strategy, flags that are known, a wait and a ttl? Most do. */
static int is_plain(const struct dblock_options *given)
{
    const uint32_t usual = DBLOCK_FAIR | DBLOCK_FENCED;

    return ((given->flags & ~usual) | given->reserved | given->reserved2 | given->permits |
               given->has_advisory_id | (uint32_t)given->mode | (uint32_t)given->heartbeat) == 0 &&
        (given->min_hold_ms | given->expiring_ms | (uint64_t)given->advisory_id) == 0 &&
        given->reentrant_owner == NULL && given->label == NULL;
}

/* All that is_plain() looks for. Apart, as most acquires have none of it. */
static DBLK_APART dblock_status check_rest(const struct dblock_options *given,
    const struct dblk_strategy *strategy, struct dblock_error *reterr)
{
    dblock_status status = refuse_later(given, reterr);

    if (status == DBLOCK_OK && (given->mode < DBLOCK_EXCLUSIVE || given->mode > DBLOCK_SHARED))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "options.mode: %d is neither DBLOCK_EXCLUSIVE nor DBLOCK_SHARED", (int)given->mode);
    if (status == DBLOCK_OK && (given->heartbeat < 0 || given->heartbeat > DBLOCK_HEARTBEAT_OFF))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "options.heartbeat: %d is none of DBLOCK_HEARTBEAT_*", (int)given->heartbeat);
    if (status == DBLOCK_OK && given->advisory_id != 0 && !given->has_advisory_id)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "set options.has_advisory_id to 1",
            "options.advisory_id: would not be used");
    if (status == DBLOCK_OK)
        status = check_time(given->min_hold_ms, 0, "options.min_hold_ms", reterr);
    if (status == DBLOCK_OK)
        status = check_time(given->expiring_ms, 0, "options.expiring_ms", reterr);
    if (status == DBLOCK_OK)
        status = check_label(given->label, "options.label", reterr);
    if (status != DBLOCK_OK)
        return status;
    if (strategy->lives_in_connection && given->min_hold_ms != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "options.min_hold_ms: a %s lock ends with its connection",
            dblock_strategy_name(strategy->id));
    if (strategy->lives_in_connection && given->heartbeat == DBLOCK_HEARTBEAT_OFF)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "options.heartbeat: a %s lock is kept by its connection",
            dblock_strategy_name(strategy->id));
    if (given->has_advisory_id != 0 && strategy->id != DBLOCK_ADVISORY)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "options.strategy = DBLOCK_ADVISORY",
            "options.advisory_id: only an advisory lock has a number");
    return DBLOCK_OK;
}

/* Nothing renews a timed grant, so the name would be free before its minimum time. A longer ttl
 * than was asked for would be no answer either: others count on it when its holder dies. */
static DBLK_APART dblock_status refuse_min_hold(
    uint64_t min_hold_ms, uint64_t ttl_ms, struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
        "take a longer ttl, or DBLOCK_HEARTBEAT_ON",
        "options.min_hold_ms: %" PRIu64 " is more than the ttl, after which a timed grant ends"
        " (%" PRIu64 " ms)",
        min_hold_ms, ttl_ms);
}

dblock_status dblk_wish_resolve(const struct dblk_settings *settings,
    const struct dblock_options *options, struct dblk_wish *ret_wish, struct dblock_error *reterr)
{
    static const struct dblock_options none = DBLOCK_OPTIONS_INIT;
    struct dblock_options copy;
    const struct dblock_options *given = options != NULL ? options : &none;
    const struct dblk_strategy *strategy;
    dblock_status status = DBLOCK_OK;
    int32_t strategy_id;

    if (given->struct_size != sizeof *given) { /* of another release */
        status = dblk_struct_read(options, &copy, sizeof copy, "options", reterr);
        given = &copy;
    }
    if (status != DBLOCK_OK)
        return status;
    strategy_id = given->strategy != 0 ? given->strategy : settings->strategy;
    strategy = dblk_strategy_of(strategy_id);
    if (strategy == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "options.strategy: %d is none of DBLOCK_LEASE, INSERT, ROW, ADVISORY",
            (int)strategy_id);
    if (!is_plain(given))
        status = check_rest(given, strategy, reterr);
    if (status == DBLOCK_OK && given->wait_ms != DBLOCK_FOREVER)
        status = check_time(given->wait_ms, 0, "options.wait_ms", reterr);
    if (status == DBLOCK_OK && given->ttl_ms != 0)
        status = check_time(given->ttl_ms, DBLK_TTL_MIN_MS, "options.ttl_ms", reterr);
    if (status != DBLOCK_OK)
        return status;
    ret_wish->strategy = strategy_id;
    ret_wish->is_heartbeat = !strategy->lives_in_connection &&
        (given->heartbeat == DBLOCK_HEARTBEAT_DEFAULT ? strategy->is_heartbeat_default
                                                     : given->heartbeat == DBLOCK_HEARTBEAT_ON);
    ret_wish->is_fair = (given->flags & DBLOCK_FAIR) != 0;
    ret_wish->is_fenced = (given->flags & DBLOCK_FENCED) != 0;
    ret_wish->wait_us = dblk_ms(given->wait_ms);
    /* all else is below ten years by now */
    ret_wish->ttl_us = given->ttl_ms != 0 ? given->ttl_ms * 1000 : settings->ttl_us;
    if (ret_wish->is_heartbeat)
        ret_wish->ttl_us = dblk_ttl_class(ret_wish->ttl_us);
    ret_wish->min_hold_us = given->min_hold_ms * 1000;
    if (!ret_wish->is_heartbeat && ret_wish->min_hold_us > ret_wish->ttl_us)
        return refuse_min_hold(given->min_hold_ms, ret_wish->ttl_us / 1000, reterr);
    ret_wish->expiring_us = given->expiring_ms * 1000;
    ret_wish->advisory_id = given->advisory_id;
    ret_wish->has_advisory_id = given->has_advisory_id != 0;
    ret_wish->label = given->label != NULL ? given->label : settings->label;
    ret_wish->canceller = given->canceller;
    ret_wish->busy = given->busy;
    ret_wish->on_event = given->on_event;
    ret_wish->context = given->context;
    return DBLOCK_OK;
}
