/* SPDX-License-Identifier: MIT */
/* cut_database.h - what tests of cut connections must know of a server besides what the
 * contract suite knows (contract_database.h): how to reach it through a proxy and how past it,
 * and who is connected. */
#ifndef DBLOCK_TEST_CUT_DATABASE_H
#define DBLOCK_TEST_CUT_DATABASE_H

#include "contract_database.h"
#include "tcp_proxy.h"

/* From here ci/services asks for no password, which is most of what a connection costs. */
#define CUT_SOURCE "127.77.0.1"

struct cut_database {
    const struct contract_database *contract; /* start() and stop() are its */
    enum tcp_proxy_wire wire;
    unsigned int (*port)(void); /* where the server listens, on 127.0.0.1 */
    /* Of the world, through a proxy on that port; static. */
    const char *(*proxied_url)(unsigned int port);
    const char *(*tls_url)(unsigned int port); /* the same, and TLS must be spoken */
    const char *(*direct_url)(void); /* over a local socket; static */
    /* Connections of the world that came by TCP. */
    unsigned int (*n_sessions)(void);
    const char *pidfile; /* the variable that names it */
};

extern const struct cut_database cut_pgsql;
extern const struct cut_database cut_mysql;

#endif
