/* SPDX-License-Identifier: MIT */
/* grant_name.c - see grant_name.h. */
#include "grant_name.h"

#include <string.h>

static int digit_value(char digit)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *found = digit != '\0' ? strchr(digits, digit) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

bool grant_name(const char *text, char name[DBLOCK_NAME_MAX + 1])
{
    size_t length = 0;
    int i;

    if (strncmp(text, "dblock1:", 8) != 0)
        return false;
    for (i = 0; i < 4; i++) {
        text = strchr(text, ':');
        if (text == NULL)
            return false;
        text++;
    }
    for (; *text != '\0' && length < DBLOCK_NAME_MAX; text++) {
        int high = *text == '%' ? digit_value(text[1]) : -1;
        int low = high >= 0 ? digit_value(text[2]) : -1;

        if (low >= 0)
            text += 2;
        name[length++] = low >= 0 ? (char)(16 * high + low) : *text;
    }
    name[length] = '\0';
    return length > 0;
}
