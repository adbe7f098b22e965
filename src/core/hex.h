/* SPDX-License-Identifier: MIT */
/* hex.h - reading hex digits; dblock_id_text() is the other way. */
#ifndef DBLK_HEX_H
#define DBLK_HEX_H

#include <dblock/sys/driver.h>

/* 0 to 15, either case, or -1. */
static inline int dblk_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* The first 2 * DBLOCK_ID_SIZE digits of `text` as an id: 0, or -1 if they are not all there. */
static inline int dblk_hex_read_id(const char *text, unsigned char id[DBLOCK_ID_SIZE])
{
    size_t i;

    for (i = 0; i < 2 * DBLOCK_ID_SIZE; ++i) {
        int digit = dblk_hex_digit(text[i]);

        if (digit < 0)
            return -1;
        id[i / 2] = (unsigned char)(i % 2 == 0 ? digit << 4 : id[i / 2] | digit);
    }
    return 0;
}

#endif
