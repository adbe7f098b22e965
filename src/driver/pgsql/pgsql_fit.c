/* SPDX-License-Identifier: MIT */
/* pgsql_fit.c - see pgsql_fit.h. Which characters an encoding has is known to the server alone, and
 * asking it beforehand would cost every connection something. */
#include "pgsql_fit.h"

#include <string.h>

const char *pgsql_fit(
    const struct dblock_connection *connection, const char *text, char room[PGSQL_FIT_SIZE])
{
    size_t n = 0;

    if (!connection->takes_ascii_only || text == NULL)
        return text;
    for (; *text != 0 && n + 1 < PGSQL_FIT_SIZE; ++text) {
        unsigned char byte = (unsigned char)*text;

        if ((byte & 0xC0) != 0x80) /* one for each character */
            room[n++] = (char)(byte < 0x80 ? byte : '?');
    }
    room[n] = 0;
    return room;
}

int pgsql_fit_is_wanted(struct dblock_connection *connection, dblock_status status,
    const struct dblock_error *error)
{
    if (status != DBLOCK_E_DATABASE || connection->takes_ascii_only ||
        strcmp(error->sqlstate, "22P05") != 0) /* untranslatable_character */
        return 0;
    connection->takes_ascii_only = 1;
    return 1;
}
