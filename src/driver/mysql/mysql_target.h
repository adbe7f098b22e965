/* SPDX-License-Identifier: MIT */
/* mysql_target.h - where to connect, as parsed from a URL and the configuration.
 * Read-only once it is made, but for what it says of the
 * server, so any thread may use it. */
#ifndef DBLOCK_MYSQL_TARGET_H
#define DBLOCK_MYSQL_TARGET_H

#include <dblock/sys/driver.h>

#include <mysql.h>
#include <stdatomic.h>

enum mysql_tls { /* ssl-mode of the URL */
    MYSQL_TLS_UNSAID = 0, /* option files and the client library decide */
    MYSQL_TLS_DISABLED = 1,
    MYSQL_TLS_PREFERRED = 2,
    MYSQL_TLS_REQUIRED = 3,
    MYSQL_TLS_VERIFY_CA = 4,
    MYSQL_TLS_VERIFY_IDENTITY = 5
};

/* Texts are NULL where the URL leaves them open; each is its own allocation. */
struct dblock_target {
    char *host; /* without brackets */
    char *user;
    char *password;
    char *database; /* the configuration's schema, else the URL's path */
    char *socket;
    char *ssl_ca, *ssl_cert, *ssl_key;
    char *option_file, *option_group;
    unsigned int port; /* 0 the default */
    int tls;           /* enum mysql_tls */
    char *client_host; /* of this process, cut to what the tables take */
    char *label;
    int64_t pid;
    uint64_t connect_timeout_us;
    uint64_t io_timeout_us;
    uint64_t ttl_us;
    MYSQL *lent;              /* the application's connection: the only one there is; NULL */
    atomic_flag is_lent_used; /* by a step */
    atomic_int is_multi_writer; /* as the last connection found it */
    struct mysql_bell_register *bells; /* of its connections; has a mutex of its own */
};

dblock_status mysql_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr);
/* The same over a connection (MYSQL *) of the application; config->url is not looked at. */
dblock_status mysql_target_open_lent(void *mysql, const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr);
void mysql_target_close(struct dblock_target *target);

#endif
