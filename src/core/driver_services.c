/* SPDX-License-Identifier: MIT */
/* driver_services.c - what include/dblock/sys/driver.h promises to drivers:
 * errors, the clock, waiting on a socket, small texts. */
#define _DEFAULT_SOURCE /* htobe64 */

#include <dblock/sys/driver.h>

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/environment.h"

/* Cuts an over-long text at a character: a lead byte without its followers goes. */
static void cut_at_character(char *text, size_t size)
{
    size_t length = strlen(text);
    size_t start = length;

    if (length + 1 < size || length == 0)
        return;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        --start;
    if (start > 0 && ((unsigned char)text[start - 1] & 0x80) != 0) {
        unsigned char lead = (unsigned char)text[start - 1];
        size_t needed = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;

        if (length - (start - 1) < needed)
            text[start - 1] = 0;
    }
}

void dblock_text_copy(char *target, size_t target_size, const char *source)
{
    size_t length = strlen(source);

    if (length >= target_size)
        length = target_size - 1;
    memcpy(target, source, length);
    target[length] = 0;
    if (source[length] != 0)
        cut_at_character(target, target_size);
}

dblock_status dblock_error_set(
    struct dblock_error *error, dblock_status status, const char *hint, const char *format, ...)
{
    va_list arguments;

    if (error == NULL)
        return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    error->is_transient = status == DBLOCK_E_CONNECTION || status == DBLOCK_E_UNCERTAIN;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    cut_at_character(error->message, sizeof error->message);
    if (hint != NULL)
        dblock_text_copy(error->hint, sizeof error->hint, hint);
    return status;
}

void dblock_error_native(
    struct dblock_error *error, int32_t native_code, const char *sqlstate, int is_transient)
{
    if (error == NULL)
        return;
    error->native_code = native_code;
    error->is_transient = is_transient != 0;
    if (sqlstate != NULL)
        dblock_text_copy(error->sqlstate, sizeof error->sqlstate, sqlstate);
}

uint64_t dblock_clock_us(void)
{
    return dblk_now_us();
}

int dblock_fd_wait(int fd, short events, const struct dblock_call *call, int heed_cancel)
{
    struct pollfd descriptors[2] = { { fd, events, 0 }, { call->cancel_fd, POLLIN, 0 } };
    nfds_t n_descriptors = heed_cancel && call->cancel_fd >= 0 ? 2 : 1;

    if (dblk_wait(descriptors, n_descriptors, call->deadline_us) <= 0)
        return 0;
    /* an answer that is there already counts before the wish to stop */
    if (descriptors[0].revents != 0)
        return 1;
    return -1;
}

void dblock_id_text(const unsigned char *id, char text[40])
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i;

    /* on the way of every acquire: eight digits at a time, each in a byte of one word */
    for (i = 0; i < DBLOCK_ID_SIZE; i += 4) {
        uint64_t word = (uint64_t)id[i] << 56 | (uint64_t)id[i + 1] << 40 |
            (uint64_t)id[i + 2] << 24 | (uint64_t)id[i + 3] << 8;
        uint64_t nibbles = (word >> 4 & UINT64_C(0x0F000F000F000F00)) |
            (word >> 8 & UINT64_C(0x000F000F000F000F));

        /* '0' to each, and the way from '9' + 1 to 'a' to those above 9 */
        nibbles += ones * '0' + ((nibbles + ones * 6) >> 4 & ones) * ('a' - '9' - 1);
        nibbles = htobe64(nibbles);
        memcpy(text + 2 * i, &nibbles, sizeof nibbles);
    }
    text[2 * DBLOCK_ID_SIZE] = 0;
}
