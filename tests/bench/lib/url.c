/* SPDX-License-Identifier: MIT */
/* url.c - see url.h. */
#include "bench/lib/url.h"

#include <string.h>

int url_value(const char *url, const char *key, char *ret_value, size_t size)
{
    const char *place = strpbrk(url, "?");
    size_t key_size = strlen(key);

    for (; place != NULL; place = strchr(place, '&')) {
        ++place;
        if (strncmp(place, key, key_size) == 0 && place[key_size] == '=') {
            size_t n = strcspn(place + key_size + 1, "&");

            if (n >= size)
                return 0;
            memcpy(ret_value, place + key_size + 1, n);
            ret_value[n] = 0;
            return 1;
        }
    }
    return 0;
}
