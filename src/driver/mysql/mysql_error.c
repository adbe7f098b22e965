/* SPDX-License-Identifier: MIT */
/* mysql_error.c - native error numbers as a table: what failed, and the way out.
 *
 * Numbers above 2000 and below 3000 are the client library's. Where MySQL and MariaDB
 * use different numbers for one thing, both are here. */
#include "mysql_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "mysql_connection.h"

struct meaning {
    unsigned int code;
    enum mysql_class class_;
    dblock_status status;
    const char *hint; /* NULL: nothing to say */
};

#define HINT_INIT "run: dblock init"
#define HINT_GRANT                                                                                 \
    "as an administrator run what \"dblock schema -g USER@HOST mysql\" prints; SELECT CURRENT_USER()"  \
    " tells USER@HOST"
#define HINT_KILL                                                                                  \
    "GRANT CONNECTION ADMIN ON *.* TO 'user'@'host' (MariaDB), GRANT CONNECTION_ADMIN (MySQL 8)"
#define HINT_PRIMARY "connect to the primary, or turn read_only off"
#define HINT_WRITE "turn transaction_read_only off (MariaDB: tx_read_only)"

#define HINT_DESCRIPTORS "raise the limit of open files (ulimit -n), or close some"

/* In the order of their numbers. */
static const struct meaning meanings[] = {
    { 1020, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL }, /* record has changed since last read */
    { 1040, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "raise max_connections" },
    { 1044, MYSQL_CLASS_REFUSED, DBLOCK_E_PERMISSION, HINT_GRANT },
    { 1045, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "check the user and the password in the URL" },
    { 1046, MYSQL_CLASS_REFUSED, DBLOCK_E_SCHEMA, "name a database: mysql://user@host/database" },
    { 1047, MYSQL_CLASS_REFUSED, DBLOCK_E_CONNECTION,
        "this node of the cluster has no quorum or is still joining" },
    { 1049, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "CREATE DATABASE, or name another one in the URL" },
    { 1053, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL }, /* shutdown in progress */
    { 1054, MYSQL_CLASS_REFUSED, DBLOCK_E_SCHEMA, HINT_INIT },
    { 1095, MYSQL_CLASS_REFUSED, DBLOCK_E_PERMISSION, HINT_KILL },
    { 1129, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, "mariadb-admin flush-hosts" },
    { 1130, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, "CREATE USER for this client's address" },
    { 1142, MYSQL_CLASS_REFUSED, DBLOCK_E_PERMISSION, HINT_GRANT },
    { 1143, MYSQL_CLASS_REFUSED, DBLOCK_E_PERMISSION, HINT_GRANT },
    { 1146, MYSQL_CLASS_REFUSED, DBLOCK_E_SCHEMA, HINT_INIT },
    /* MySQL's last word when it cannot read on: whatever comes as the answer to a statement then,
     * the statement has not been read */
    { 1158, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },
    { 1159, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },
    { 1180, MYSQL_CLASS_REFUSED, DBLOCK_E_UNCERTAIN, NULL }, /* error during COMMIT */
    { 1203, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "raise max_user_connections" },
    { 1205, MYSQL_CLASS_LOCKED, DBLOCK_OK, NULL },
    { 1213, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL },
    { 1226, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "the account's limit of resources" },
    { 1227, MYSQL_CLASS_REFUSED, DBLOCK_E_PERMISSION, HINT_KILL },
    { 1243, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL }, /* unknown prepared statement */
    { 1290, MYSQL_CLASS_REFUSED, DBLOCK_E_READ_ONLY, HINT_PRIMARY },
    { 1317, MYSQL_CLASS_TIMEOUT, DBLOCK_E_DATABASE, NULL }, /* KILL QUERY */
    { 1412, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL },        /* table definition has changed */
    { 1615, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL },        /* must be prepared anew */
    { 1665, MYSQL_CLASS_REFUSED, DBLOCK_E_UNSUPPORTED,
        "SET GLOBAL binlog_format = 'ROW' (or MIXED): statements at READ COMMITTED cannot be "
        "logged as text" },
    { 1690, MYSQL_CLASS_REFUSED, DBLOCK_E_DATABASE, MYSQL_HINT_RANGE },
    { 1698, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "this user may only log in as the system's user" },
    { 1792, MYSQL_CLASS_REFUSED, DBLOCK_E_READ_ONLY, HINT_WRITE },
    { 1820, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "the user's password has expired" },
    { 1836, MYSQL_CLASS_REFUSED, DBLOCK_E_READ_ONLY, HINT_PRIMARY },
    { 1862, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "the user's password has expired" },
    { 1927, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },  /* connection was killed */
    { 1969, MYSQL_CLASS_TIMEOUT, DBLOCK_E_DATABASE, NULL }, /* max_statement_time */
    { 2000, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },
    { 2001, MYSQL_CLASS_GONE, DBLOCK_E_SYSTEM, HINT_DESCRIPTORS }, /* no socket to be had, local */
    { 2002, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "check the host, port or socket in the URL, and that the server runs" },
    { 2003, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "check the host and the port in the URL, and that the server runs" },
    { 2004, MYSQL_CLASS_GONE, DBLOCK_E_SYSTEM, HINT_DESCRIPTORS }, /* the same, of TCP */
    { 2005, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, "check the host in the URL" },
    { 2006, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL }, /* could not be sent */
    { 2008, MYSQL_CLASS_GONE, DBLOCK_E_MEMORY, NULL },
    { 2012, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },
    { 2013, MYSQL_CLASS_GONE, DBLOCK_E_UNCERTAIN, NULL },    /* no answer */
    { 2014, MYSQL_CLASS_GONE, DBLOCK_E_UNCERTAIN, NULL },    /* out of step */
    { 2026, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, "check ssl-mode and ssl-ca in the URL" },
    { 2027, MYSQL_CLASS_GONE, DBLOCK_E_UNCERTAIN, NULL },    /* malformed packet */
    { 2054, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, NULL },
    { 2055, MYSQL_CLASS_GONE, DBLOCK_E_UNCERTAIN, NULL },    /* no answer, with an errno */
    { 2058, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, NULL },
    { 2059, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN,
        "the client library lacks the user's authentication plugin" },
    { 2061, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN,
        "caching_sha2_password needs TLS (ssl-mode=REQUIRED) or a socket at first" },
    { 3024, MYSQL_CLASS_TIMEOUT, DBLOCK_E_DATABASE, NULL }, /* MAX_EXECUTION_TIME */
    { 3058, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL },        /* deadlock of GET_LOCK */
    { 3101, MYSQL_CLASS_CONFLICT, DBLOCK_OK, NULL },        /* Group Replication chose another */
    { 3118, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "the account is locked" },
    { 3572, MYSQL_CLASS_LOCKED, DBLOCK_OK, NULL },          /* NOWAIT */
    { 4031, MYSQL_CLASS_GONE, DBLOCK_E_CONNECTION, NULL },  /* idle for wait_timeout */
    { 4151, MYSQL_CLASS_REFUSED, DBLOCK_E_LOGIN, "the account is locked" },
    { 5010, MYSQL_CLASS_GONE, DBLOCK_E_LOGIN, /* the library's, too: mysql_connection.c */
        "let the account use another plugin, for PAM with pam_use_cleartext_plugin = ON, and prove "
        "the server by ssl-mode=VERIFY_CA" },
};

static const struct meaning *find_meaning(unsigned int code)
{
    size_t i;

    for (i = 0; i < sizeof meanings / sizeof *meanings; ++i)
        if (meanings[i].code == code)
            return &meanings[i];
    return NULL;
}

enum mysql_class mysql_error_class(unsigned int code)
{
    const struct meaning *meaning = find_meaning(code);

    if (meaning != NULL)
        return meaning->class_;
    return code >= 2000 && code < 3000 ? MYSQL_CLASS_GONE : MYSQL_CLASS_REFUSED;
}

int mysql_error_is_lost_answer(unsigned int code)
{
    return code == 2013 || code == 2014 || code == 2027 || code == 2055 || code == 1180;
}

dblock_status mysql_error_status(unsigned int code, int is_connecting, const char **ret_hint)
{
    const struct meaning *meaning = find_meaning(code);
    dblock_status status = meaning != NULL ? meaning->status
        : code >= 2000 && code < 3000      ? DBLOCK_E_CONNECTION
                                           : DBLOCK_E_DATABASE;

    *ret_hint = meaning != NULL ? meaning->hint : NULL;
    if (is_connecting && code == 1044) {
        status = DBLOCK_E_LOGIN; /* the database of the URL */
    } else if (is_connecting && status == DBLOCK_E_UNCERTAIN) {
        status = DBLOCK_E_CONNECTION;
    } else if (status == DBLOCK_OK) {
        /* A conflict that the step did not turn into an answer: nothing took effect. */
        status = DBLOCK_E_DATABASE;
    }
    return status;
}

dblock_status mysql_fail(struct dblock_connection *connection, struct dblock_error *reterr,
    const char *format, ...)
{
    char attempt[400];
    const char *hint;
    dblock_status status = mysql_error_status(connection->error_code, 0, &hint);
    va_list arguments;

    if (status == DBLOCK_E_UNCERTAIN && !connection->is_effect_possible)
        status = DBLOCK_E_CONNECTION;
    /* A read of a node waits for what the others have written, and says this if they are gone. */
    if (connection->is_multi_writer && connection->error_code == 1205)
        status = mysql_error_status(1047, 0, &hint);
    va_start(arguments, format);
    (void)vsnprintf(attempt, sizeof attempt, format, arguments);
    va_end(arguments);
    (void)dblock_error_set(reterr, status, hint, "%s: %s", attempt, connection->error_text);
    dblock_error_native(reterr, (int32_t)connection->error_code, connection->error_sqlstate,
        status == DBLOCK_E_CONNECTION || status == DBLOCK_E_UNCERTAIN ||
            mysql_error_class(connection->error_code) != MYSQL_CLASS_REFUSED);
    return status;
}
