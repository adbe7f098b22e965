/* SPDX-License-Identifier: MIT */
/* wire_message.c - see wire_message.h. */
#include "wire_message.h"

#include <stdio.h>
#include <string.h>

#include "tcp_proxy.h"

void wire_state_init(struct wire_state *state, int wire)
{
    memset(state, 0, sizeof *state);
    state->wire = wire;
}

static size_t read_big(const unsigned char *bytes)
{
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

size_t wire_message_size(
    const struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size)
{
    switch (state->wire) {
    case PROXY_WIRE_PGSQL:
        if (is_to_server && !state->has_startup)
            return size < 4 ? 0 : read_big(bytes);
        return size < 5 ? 0 : 1 + read_big(bytes + 1);
    case PROXY_WIRE_MYSQL:
        return size < 4
            ? 0
            : 4 + ((size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16);
    default:
        return size;
    }
}

/* PostgreSQL is ready for queries; MySQL says OK, whose first byte no greeting has. */
static int ends_login(
    const struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size)
{
    if (is_to_server)
        return 0;
    if (state->wire == PROXY_WIRE_PGSQL)
        return bytes[0] == 'Z';
    return state->wire != PROXY_WIRE_MYSQL || (size > 4 && bytes[4] == 0);
}

int wire_message_saw(
    struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size)
{
    int is_login = !state->is_logged_in;

    if (ends_login(state, is_to_server, bytes, size))
        state->is_logged_in = 1;
    if (is_to_server)
        state->has_startup = 1;
    return is_login;
}

const char *wire_message_name(
    struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size)
{
    unsigned int type = bytes[0];

    (void)is_to_server;
    if (state->wire == PROXY_WIRE_MYSQL && size > 4)
        type = bytes[4];
    if (state->wire == PROXY_WIRE_PGSQL && type >= '1' && type <= 'z')
        (void)snprintf(state->name, sizeof state->name, "%c", (int)type);
    else
        (void)snprintf(state->name, sizeof state->name, "%02x", type);
    return state->name;
}
