/* SPDX-License-Identifier: MIT */
/* silent_tls.h - a server that agrees to speak TLS, and then says no more. */
#ifndef DBLOCK_TEST_SILENT_TLS_H
#define DBLOCK_TEST_SILENT_TLS_H

#include "tcp_proxy.h"

struct silent_tls;

/* NULL: it cannot be had. What it says before TLS is, for MySQL, that of the server there. */
struct silent_tls *silent_tls_start(enum tcp_proxy_wire wire, unsigned int server_port);
void silent_tls_stop(struct silent_tls *silent);
unsigned int silent_tls_port(const struct silent_tls *silent);

#endif
