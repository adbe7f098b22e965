/* SPDX-License-Identifier: MIT */
/* text.c - escaping what others wrote, and printing the database's times. */
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_SECOND INT64_C(1000000)

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t text_character_length(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    if (p[0] < 0x80)
        return p[0] == 0 ? 0 : 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        return is_continuation(p[1]) ? 2 : 0;
    if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        /* No overlong forms and no surrogates. */
        if (!is_continuation(p[1]) || !is_continuation(p[2]) || (p[0] == 0xE0 && p[1] < 0xA0) ||
            (p[0] == 0xED && p[1] > 0x9F))
            return 0;
        return 3;
    }
    if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        if (!is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3]) ||
            (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
            return 0;
        return 4;
    }
    return 0;
}

/* C0, DEL, C1, and the marks that turn the direction of text round. */
static bool is_steering(const char *character, size_t length)
{
    const unsigned char *p = (const unsigned char *)character;

    if (length == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    if (length == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    if (length == 3 && p[0] == 0xE2)
        return (p[1] == 0x80 && (p[2] == 0x8E || p[2] == 0x8F || (p[2] >= 0xA8 && p[2] <= 0xAE))) ||
               (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9);
    return false;
}

static size_t escape_byte(unsigned char byte, char escape[5])
{
    switch (byte) {
    case '\n':
        return (size_t)snprintf(escape, 5, "\\n");
    case '\t':
        return (size_t)snprintf(escape, 5, "\\t");
    case '\r':
        return (size_t)snprintf(escape, 5, "\\r");
    case '\\':
        return (size_t)snprintf(escape, 5, "\\\\");
    default:
        return (size_t)snprintf(escape, 5, "\\x%02x", byte);
    }
}

static const char *escape_text(const char *text, bool is_quoted, char *buffer, size_t size)
{
    char escape[5];
    size_t used = 0;

    while (*text != '\0') {
        size_t length = text_character_length(text);
        const char *piece = text;
        size_t piece_length = length;

        if (is_quoted && *text == '"') {
            piece_length = 2;
            piece = "\\\"";
        } else if (length == 0 || *text == '\\' || is_steering(text, length)) {
            /* Byte by byte: what follows in the same character is then no
             * character of its own, and is escaped as well. */
            length = 1;
            piece_length = escape_byte((unsigned char)*text, escape);
            piece = escape;
        }
        if (used + piece_length >= size)
            break;
        memcpy(buffer + used, piece, piece_length);
        used += piece_length;
        text += length;
    }
    buffer[used] = '\0';
    return buffer;
}

const char *text_escape(const char *text, char *buffer, size_t size)
{
    return escape_text(text, false, buffer, size);
}

const char *text_quote(const char *text, char *buffer, size_t size)
{
    buffer[0] = '"';
    (void)escape_text(text, true, buffer + 1, size - 2);
    memcpy(buffer + strlen(buffer), "\"", 2);
    return buffer;
}

const char *text_word(const char *text, char *buffer, size_t size)
{
    if (strpbrk(text, " \"") == NULL && strcmp(text_escape(text, buffer, size), text) == 0)
        return buffer;
    return text_quote(text, buffer, size);
}

/* Whole seconds and the rest, also right before 1970. */
static time_t split(int64_t us, long *ret_rest)
{
    int64_t seconds = us / US_PER_SECOND;
    int64_t rest = us % US_PER_SECOND;

    if (rest < 0) {
        rest += US_PER_SECOND;
        seconds--;
    }
    *ret_rest = (long)rest;
    return (time_t)seconds;
}

const char *text_time_rfc3339(int64_t us, char buffer[TIME_TEXT_SIZE])
{
    struct tm parts;
    long rest;
    time_t seconds = split(us, &rest);
    size_t used;

    if (gmtime_r(&seconds, &parts) == NULL)
        memset(&parts, 0, sizeof parts);
    used = strftime(buffer, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(buffer + used, TIME_TEXT_SIZE - used, ".%06ldZ", rest);
    return buffer;
}

const char *text_time_local(int64_t us, int64_t now_us, char buffer[TIME_TEXT_SIZE])
{
    const int64_t half_day_us = 12 * 3600 * US_PER_SECOND;
    struct tm parts;
    long rest;
    time_t seconds = split(us, &rest);
    bool is_near = us > now_us - half_day_us && us < now_us + half_day_us;

    if (localtime_r(&seconds, &parts) == NULL)
        memset(&parts, 0, sizeof parts);
    (void)strftime(buffer, TIME_TEXT_SIZE, is_near ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
    return buffer;
}
