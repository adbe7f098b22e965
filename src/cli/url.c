/* SPDX-License-Identifier: MIT */
/* url.c - finding passwords in URLs. It errs to the side of hiding too much: the
 * drivers, not this file, decide what a URL means. */
#include "url.h"

#include <stdlib.h>
#include <string.h>

struct part {
    size_t start;
    size_t length;
};

/* scheme://user:PASSWORD@host/...: the last '@' before the options counts, as
 * people write passwords with '@' and '/' unescaped. */
static bool find_in_authority(const char *url, struct part *ret_part)
{
    const char *start = strstr(url, "://");
    const char *end;
    const char *at = NULL;
    const char *p;

    if (start == NULL)
        return false;
    start += 3;
    end = start + strcspn(start, "?");
    for (p = start; p < end; p++)
        if (*p == '@')
            at = p;
    if (at == NULL)
        return false;
    p = memchr(start, ':', (size_t)(at - start));
    if (p == NULL || p + 1 == at)
        return false;
    ret_part->start = (size_t)(p + 1 - url);
    ret_part->length = (size_t)(at - p - 1);
    return true;
}

/* ?password=..., &sslpassword=...: everything up to the next option. `from` is
 * where to go on. */
static bool find_in_options(const char *url, size_t from, struct part *ret_part)
{
    static const char key[] = "password=";
    const char *found = strstr(url + from, key);

    if (found == NULL)
        return false;
    found += sizeof key - 1;
    ret_part->start = (size_t)(found - url);
    ret_part->length = strcspn(found, "&");
    return true;
}

bool url_has_password(const char *url)
{
    struct part part;

    return find_in_authority(url, &part) || (find_in_options(url, 0, &part) && part.length > 0);
}

void url_hide_password(char *url)
{
    struct part part;
    size_t from = 0;

    if (find_in_authority(url, &part))
        memset(url + part.start, 'x', part.length);
    while (find_in_options(url, from, &part)) {
        memset(url + part.start, 'x', part.length);
        from = part.start + part.length;
    }
}

char *url_for_people(const char *url)
{
    char *text = strdup(url);
    char *start;
    char *at;

    if (text == NULL)
        return NULL;
    text[strcspn(text, "?")] = '\0';
    start = strstr(text, "://");
    if (start != NULL) {
        start += 3;
        at = strrchr(start, '@');
        if (at != NULL)
            memmove(start, at + 1, strlen(at + 1) + 1);
    }
    return text;
}
