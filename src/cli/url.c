/* SPDX-License-Identifier: MIT */
/* url.c - finding passwords in URLs. The drivers and their client libraries, not this file, decide
 * what a URL means: what any of them takes for a password is one, and when in doubt more is
 * hidden. */
#include "url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 32 /* no library knows a longer one */

struct part {
    size_t start;
    size_t length;
};

/* Behind "scheme://"; NULL if there is no such thing. */
static const char *authority_of(const char *url)
{
    const char *found = strstr(url, "://");

    return found != NULL ? found + 3 : NULL;
}

static const char *last_at(const char *start, size_t length)
{
    while (length > 0)
        if (start[--length] == '@')
            return start + length;
    return NULL;
}

/* The '@' behind user and password; NULL if there is none. People write passwords with '@' and '/'
 * unescaped, so it is the last one before the options. To libpq the first one ends the login, also
 * behind a '?', if no '/' comes before it. */
static const char *login_end(const char *start)
{
    const char *end = last_at(start, strcspn(start, "?"));
    const char *first = start + strcspn(start, "@/");

    if (*first == '@' && (end == NULL || first > end))
        end = last_at(start, (size_t)(first - start) + 1 + strcspn(first + 1, "/?"));
    return end;
}

/* Between the first ':' and the '@' at `end`. */
static bool find_between(const char *url, const char *start, const char *end, struct part *ret_part)
{
    const char *colon = end != NULL ? memchr(start, ':', (size_t)(end - start)) : NULL;

    if (colon == NULL || colon + 1 == end)
        return false;
    ret_part->start = (size_t)(colon + 1 - url);
    ret_part->length = (size_t)(end - colon - 1);
    return true;
}

/* scheme://user:PASSWORD@host/... */
static bool find_in_authority(const char *url, struct part *ret_part)
{
    const char *start = authority_of(url);

    return start != NULL && find_between(url, start, login_end(start), ret_part);
}

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit != '\0' ? strchr(digits, tolower((unsigned char)digit)) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* Is the value of this key for nobody's eyes? libpq decodes names as well as values. */
static bool is_secret(const char *key, size_t length)
{
    static const char *const words[] = {"password", "secret", "scram_"};
    char name[KEY_MAX + 1];
    size_t n = 0;
    size_t i;

    for (i = 0; i < length; i++) {
        int high = key[i] == '%' && i + 2 < length ? hex_digit(key[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(key[i + 2]) : -1;

        if (n == KEY_MAX)
            return true;
        if (low >= 0)
            i += 2;
        name[n++] = (char)tolower(low >= 0 ? high * 16 + low : (unsigned char)key[i]);
    }
    name[n] = '\0';
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

/* ?password=..., &sslp%61ssword=...: everything up to the next option. In what is no URL, as
 * libpq's "host=h password=...", which no driver takes: up to the end. `from` is where to go on. */
static bool find_in_options(const char *url, size_t from, struct part *ret_part)
{
    bool is_url = authority_of(url) != NULL;
    const char *p = url + from;

    if (from == 0 && is_url)
        p += strcspn(p, "?");
    while (*p != '\0') {
        size_t length = strcspn(p, is_url ? "?&=" : "?&= ");

        if (p[length] == '=' && is_secret(p, length)) {
            p += length + 1;
            ret_part->start = (size_t)(p - url);
            ret_part->length = is_url ? strcspn(p, "&") : strlen(p);
            return true;
        }
        p += length;
        if (*p != '\0')
            p++;
    }
    return false;
}

bool url_has_password(const char *url)
{
    struct part part = {0, 0};

    if (authority_of(url) == NULL)
        return false;
    if (find_in_authority(url, &part))
        return true;
    while (find_in_options(url, part.start + part.length, &part))
        if (part.length > 0)
            return true;
    return false;
}

void url_hide_password(char *url)
{
    const char *start = authority_of(url);
    struct part login = {0, 0};
    struct part part;
    size_t from = 0;

    /* Up to the last '@' of all: behind a '/' and a '?' it is no password to anybody but to who
     * wrote it. Found before anything is overwritten. */
    if (start != NULL)
        (void)find_between(url, start, last_at(start, strlen(start)), &login);
    while (find_in_options(url, from, &part)) {
        memset(url + part.start, 'x', part.length);
        from = part.start + part.length;
    }
    memset(url + login.start, 'x', login.length);
}

char *url_for_people(const char *url)
{
    char *text = strdup(url);
    char *start;
    const char *at;

    if (text == NULL)
        return NULL;
    start = strstr(text, "://");
    if (start != NULL) {
        start += 3;
        at = login_end(start);
        if (at != NULL)
            memmove(start, at + 1, strlen(at + 1) + 1);
    }
    text[strcspn(text, "?")] = '\0';
    return text;
}
