/* SPDX-License-Identifier: MIT */
/* duration.c - reading and writing durations. Integers only: strtod() would take
 * "nan", "1e30" and the locale's decimal point. */
#include "duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    uint64_t ms;
} units[] = {
    {"", 1000},
    {"ms", 1},
    {"s", 1000},
    {"m", 60 * 1000},
    {"h", 3600 * 1000},
    {"d", 24 * 3600 * 1000},
};

static bool find_unit(const char *text, uint64_t *ret_ms)
{
    size_t i;

    for (i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].text, text) == 0) {
            *ret_ms = units[i].ms;
            return true;
        }
    return false;
}

bool duration_parse(const char *text, uint64_t *ret_ms)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t fraction_unit = 1;
    uint64_t unit_ms;
    uint64_t ms;

    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        whole = whole * 10 + (uint64_t)(*text - '0');
        if (whole > DURATION_MAX_MS)
            return false;
    }
    if (*text == '.') {
        text++;
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++)
            /* Nine digits and not more: a day times 10^9 still fits. */
            if (fraction_unit < UINT64_C(1000000000)) {
                fraction = fraction * 10 + (uint64_t)(*text - '0');
                fraction_unit *= 10;
            } else if (*text != '0') {
                return false;
            }
    }
    if (!find_unit(text, &unit_ms) || whole > DURATION_MAX_MS / unit_ms)
        return false;
    if (fraction * unit_ms % fraction_unit != 0)
        return false;
    ms = whole * unit_ms + fraction * unit_ms / fraction_unit;
    if (ms > DURATION_MAX_MS)
        return false;
    *ret_ms = ms;
    return true;
}

const char *duration_text(uint64_t ms, char buffer[DURATION_TEXT_SIZE])
{
    const uint64_t second = 1000;
    const uint64_t minute = 60 * second;
    const uint64_t hour = 60 * minute;
    const uint64_t day = 24 * hour;

    if (ms < second)
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 " ms", ms);
    else if (ms < 10 * second && ms % second >= 100)
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 ".%" PRIu64 " s", ms / second,
            ms % second / 100);
    else if (ms < 2 * minute)
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 " s", ms / second);
    else if (ms < 2 * hour)
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 " min", ms / minute);
    else if (ms < 2 * day)
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 " h", ms / hour);
    else
        (void)snprintf(buffer, DURATION_TEXT_SIZE, "%" PRIu64 " days", ms / day);
    return buffer;
}
