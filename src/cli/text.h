/* SPDX-License-Identifier: MIT */
/* text.h - strings and times of a database, made fit for a terminal. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TIME_TEXT_SIZE 40

/* Room for any string of `length` bytes that text_escape() has gone over. */
#define ESCAPED_SIZE(length) (4 * (length) + 1)

/* Names, labels and hosts are written by others. What would steer a terminal
 * (control characters, direction marks) or is no UTF-8 is shown as \n, \x1b or
 * \\. Cuts to `size`, never inside an escape. Returns `buffer`. */
const char *text_escape(const char *text, char *buffer, size_t size);

/* Room for that in quotes. */
#define QUOTED_SIZE(length) (ESCAPED_SIZE(length) + 2)

/* The same in quotes, those inside as \". */
const char *text_quote(const char *text, char *buffer, size_t size);

/* In quotes only if it has blanks, quotes or something to escape: its end can be seen then. */
const char *text_word(const char *text, char *buffer, size_t size);

/* Length of the valid UTF-8 character at `text`, 0 if there is none. */
size_t text_character_length(const char *text);

/* RFC 3339 with microseconds, UTC: "2026-11-29T02:30:01.000123Z". */
const char *text_time_rfc3339(int64_t us, char buffer[TIME_TEXT_SIZE]);

/* For people, in the local time zone: "02:30:01", with the date in front if it
 * is more than half a day before or after `now_us`. */
const char *text_time_local(int64_t us, int64_t now_us, char buffer[TIME_TEXT_SIZE]);

#endif
