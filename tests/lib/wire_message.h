/* SPDX-License-Identifier: MIT */
/* wire_message.h - where one message of a server's protocol ends and the next begins. Only as
 * much as a proxy must know: lengths, and when logging in is over. */
#ifndef DBLOCK_TEST_WIRE_MESSAGE_H
#define DBLOCK_TEST_WIRE_MESSAGE_H

#include <stddef.h>

struct wire_state { /* of one connection */
    int wire;       /* enum tcp_proxy_wire */
    int has_startup; /* PostgreSQL: the first message of a client has no type */
    int is_logged_in;
    char name[8];
};

void wire_state_init(struct wire_state *state, int wire);
/* Bytes of the first message in `bytes`: more than `size` if it is not complete; 0 if there are
 * too few to tell. */
size_t wire_message_size(const struct wire_state *state, int is_to_server,
    const unsigned char *bytes, size_t size);
/* A whole message passes. 1 if it belongs to logging in. */
int wire_message_saw(
    struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size);
/* For people; of the message that was seen last. */
const char *wire_message_name(
    struct wire_state *state, int is_to_server, const unsigned char *bytes, size_t size);

#endif
