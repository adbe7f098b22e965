/* SPDX-License-Identifier: MIT */
/* name.c - names are checked here, in bytes, and never left to a server: one
 * would cut them (MySQL without strict mode), another fold them. */
#include "core/name.h"

#include <dblock/sys/driver.h>
#include <string.h>

/* The length of the character at `text`, or 0 if it is not well-formed. */
static size_t measure_character(const unsigned char *text)
{
    unsigned char lead = text[0];
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    unsigned long code = lead;
    size_t i;

    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    code = lead & (0xFFu >> (length + 1));
    for (i = 1; i < length; ++i) {
        if ((text[i] & 0xC0) != 0x80) /* also the zero at the end */
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    if ((length == 3 && code < 0x800) || (length == 4 && code < 0x10000) || code > 0x10FFFF ||
        (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return length;
}

/* Most names are, and this is on the way of every acquire. */
static int is_ascii(const unsigned char *text, size_t length)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t seen = 0;
    uint64_t word;

    for (; length >= sizeof word; length -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        seen |= word;
    }
    for (; length > 0; --length, ++text)
        seen |= *text;
    return (seen & high) == 0;
}

static DBLOCK_COLD_ enum dblk_text_fault check_characters(const unsigned char *next, size_t max)
{
    size_t length = 0;

    while (next[length] != 0) {
        size_t step = next[length] < 0x80 ? 1 : measure_character(next + length);

        if (step == 0)
            return DBLK_TEXT_INVALID;
        length += step;
        if (length > max)
            return DBLK_TEXT_LONG;
    }
    return DBLK_TEXT_GOOD;
}

enum dblk_text_fault dblk_text_check(const char *text, size_t max)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strlen(text);

    if (length == 0)
        return DBLK_TEXT_EMPTY;
    if (length <= max && is_ascii(bytes, length))
        return DBLK_TEXT_GOOD;
    return check_characters(bytes, max);
}

dblock_status dblk_name_check(const char *name, struct dblock_error *reterr)
{
    if (name == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "name: NULL");
    switch (dblk_text_check(name, DBLOCK_NAME_MAX)) {
    case DBLK_TEXT_GOOD:
        return DBLOCK_OK;
    case DBLK_TEXT_EMPTY:
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "name: empty");
    case DBLK_TEXT_LONG:
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "a hash of the long part keeps it short",
            "name: longer than %d bytes", DBLOCK_NAME_MAX);
    default:
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, "names are UTF-8 text", "name: not well-formed UTF-8");
    }
}
