/* SPDX-License-Identifier: MIT */
/* options_fuzz.c - any bytes as the structs that callers fill: refused with a message, or
 * resolved to what the core may rely on. */
#include "fuzz.h"

#include <stddef.h>

#include "core/options.h"

/* A caller says how long his struct is, and has the memory for it. */
union config {
    struct dblock_config config;
    char room[DBLK_STRUCT_SIZE_MAX];
};

union options {
    struct dblock_options options;
    char room[DBLK_STRUCT_SIZE_MAX];
};

struct input {
    const uint8_t *bytes;
    size_t size;
};

/* Some of the members, each from its own bytes, so that the others are what a caller leaves; and a
 * little behind them, where a later release may have more. */
static void spoil(struct input *input, void *target, size_t size)
{
    size += 64;
    while (input->size >= 10) {
        size_t offset = (size_t)(input->bytes[0] | input->bytes[1] << 8) % size;
        size_t length = size - offset < 8 ? size - offset : 8;

        memcpy((char *)target + offset, input->bytes + 2, length);
        input->bytes += 10;
        input->size -= 10;
    }
}

static void resolve_settings(struct input *input)
{
    static union config given;
    struct dblock_config *config = &given.config;
    const struct dblock_config defaults = DBLOCK_CONFIG_INIT;
    struct dblk_settings settings;
    struct dblock_error error;
    dblock_status status;

    memset(&given, 0, sizeof given);
    *config = defaults;
    spoil(input, config, sizeof *config);
    /* pointers are the caller's word; those here lead somewhere */
    config->label = config->label != NULL ? "label" : NULL;
    config->schema = config->schema != NULL ? "schema" : NULL;
    config->keeper_url = config->keeper_url != NULL ? "url" : NULL;
    memset(&error, 0xA5, sizeof error);
    status = dblk_settings_resolve(config, &settings, &error);
    if (status != DBLOCK_OK) {
        EXPECT(status < 0 && error.status == status && error.message[0] != 0);
        return;
    }
    EXPECT(settings.io_us > 0 && settings.connect_us > 0 && settings.ttl_us > 0);
    EXPECT(settings.connections_max > 0);
    EXPECT(settings.strategy >= DBLOCK_LEASE && settings.strategy <= DBLOCK_ADVISORY);
}

static void resolve_wish(struct input *input)
{
    static union options given;
    struct dblock_options *options = &given.options;
    const struct dblock_options defaults = DBLOCK_OPTIONS_INIT;
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct dblk_settings settings;
    struct dblk_wish wish;
    struct dblock_error error;
    dblock_status status;

    EXPECT(dblk_settings_resolve(NULL, &settings, &error) == DBLOCK_OK);
    memset(&given, 0, sizeof given);
    *options = defaults;
    spoil(input, options, sizeof *options);
    options->label = options->label != NULL ? "label" : NULL;
    options->busy = options->busy != NULL ? &busy : NULL;
    memset(&error, 0xA5, sizeof error);
    status = dblk_wish_resolve(&settings, options, &wish, &error);
    if (status != DBLOCK_OK) {
        EXPECT(status < 0 && error.status == status && error.message[0] != 0);
        return;
    }
    EXPECT(wish.strategy >= DBLOCK_LEASE && wish.strategy <= DBLOCK_ADVISORY);
    EXPECT(wish.ttl_us >= DBLK_TTL_MIN_MS * 1000u && wish.ttl_us <= DBLK_TEN_YEARS_MS * 1000u);
    EXPECT(wish.label != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = { bytes + 1, size - 1 };

    if (size == 0)
        return 0;
    if (bytes[0] % 2 == 0)
        resolve_settings(&input);
    else
        resolve_wish(&input);
    return 0;
}
