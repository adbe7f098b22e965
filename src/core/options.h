/* SPDX-License-Identifier: MIT */
/* options.h - what callers may ask for: defaults, limits and the growth rule of
 * the public structs, in one place. */
#ifndef DBLK_OPTIONS_H
#define DBLK_OPTIONS_H

#include <dblock/dblock.h>

#define DBLK_TTL_MIN_MS 20u
#define DBLK_TEN_YEARS_MS (UINT64_C(10) * 366 * 24 * 3600 * 1000)

/* More than any public struct will ever have: it is no size, but memory that nobody has filled, and
 * what follows it may not be there to be looked at. */
#define DBLK_STRUCT_SIZE_MAX 4096u

/* Every public struct begins with its size, so that is a multiple of that type's. Any other would
 * end in the middle of a member, and half a pointer leads nowhere. */
static inline int dblk_struct_size_is_good(size_t size)
{
    return size >= sizeof size && size <= DBLK_STRUCT_SIZE_MAX && size % sizeof size == 0;
}

struct dblk_settings { /* struct dblock_config, resolved */
    char label[DBLOCK_LABEL_MAX + 1];
    uint64_t connect_us;
    uint64_t io_us;
    uint64_t outage_us;
    uint64_t ttl_us;
    int32_t strategy;
    uint32_t connections_max;
    dblock_trace_fn on_trace;
    void *trace_context;
};

struct dblk_wish { /* struct dblock_options, resolved */
    int32_t strategy;
    int is_heartbeat;
    int is_fenced;
    int is_fair;
    uint64_t wait_us;
    uint64_t ttl_us;
    uint64_t min_hold_us;
    uint64_t expiring_us;
    int64_t advisory_id;
    int has_advisory_id;
    const char *label; /* borrowed */
    dblock_canceller *canceller;
    struct dblock_grant *busy;
    dblock_event_fn on_event;
    void *context;
};

/* `config` and `options` may be NULL. E_ARGUMENT names the member; E_UNSUPPORTED what this
 * release cannot do yet. */
dblock_status dblk_settings_resolve(const struct dblock_config *config,
    struct dblk_settings *ret_settings, struct dblock_error *reterr);
dblock_status dblk_wish_resolve(const struct dblk_settings *settings,
    const struct dblock_options *options, struct dblk_wish *ret_wish, struct dblock_error *reterr);

/* The growth rule: copies what both know of a caller's struct whose first member is its size. */
dblock_status dblk_struct_read(const void *source, void *target, size_t known_size,
    const char *what, struct dblock_error *reterr);

/* The other way: fills the caller's struct as far as it reaches. E_ARGUMENT for a size that is
 * none. */
dblock_status dblk_struct_write(
    void *target, const void *source, size_t known_size, const char *what,
    struct dblock_error *reterr);

/* The heartbeat class for a ttl: the largest one not above it, so that others take over no later
 * than was asked for. Below the smallest class the ttl itself. */
uint64_t dblk_ttl_class(uint64_t ttl_us);

#endif
