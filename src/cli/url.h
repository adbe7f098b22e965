/* SPDX-License-Identifier: MIT */
/* url.h - which part of a database URL may be seen. */
#ifndef CLI_URL_H
#define CLI_URL_H

#include <stdbool.h>

/* Is there a password in it? */
bool url_has_password(const char *url);

/* Overwrites every password in place, byte by byte, so that its end stays where
 * it is: for the memory that ps shows. */
void url_hide_password(char *url);

/* For messages: without user, password and options. Malloced; NULL if there is
 * no memory. */
char *url_for_people(const char *url);

#endif
