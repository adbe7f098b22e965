/* SPDX-License-Identifier: MIT */
/* contract_database.h - what the contract suite needs to know of one database:
 * how to reach it, what it cannot do, and how to hurt it behind the library's
 * back. Each has a world of its own for this process (a schema, a database or a
 * file), made by start() and removed by stop(). */
#ifndef DBLOCK_TEST_CONTRACT_DATABASE_H
#define DBLOCK_TEST_CONTRACT_DATABASE_H

#include <dblock/dblock.h>

enum contract_url {
    CONTRACT_URL = 1,         /* of the world */
    CONTRACT_URL_PASSWORD,    /* the same with a wrong password */
    CONTRACT_URL_UNREACHABLE, /* nobody listens there */
    CONTRACT_URL_SILENT,      /* connecting gets no answer */
    CONTRACT_URL_POOR,        /* of a role that may not use the tables */
    CONTRACT_URL_MALFORMED    /* of this scheme, but not a URL that can be parsed */
};

enum contract_view {
    CONTRACT_VIEW_BUSY = 0, /* only that it is held */
    CONTRACT_VIEW_NAME,     /* and it is listed by name, once a token was drawn */
    CONTRACT_VIEW_HOLDER    /* and the host and the pid of the process that holds it */
};

enum contract_hurt {              /* what happens to the next step of its kind, and only to that */
    CONTRACT_LOSE_TAKE = 1,       /* done, and the answer does not arrive */
    CONTRACT_LOSE_TAKE_AND_LOOKS, /* and reading who owns the name fails too, for a second */
    CONTRACT_LOSE_RELEASE,
    CONTRACT_DELAY_TAKE, /* done, and the answer comes half a second later */
    CONTRACT_REFUSE_HEARTBEAT
};

/* A member that is NULL, and a URL that is, does not exist in this database. */
struct contract_database {
    const char *name;
    const dblock_driver *(*driver)(void);
    const char *(*start)(void); /* NULL: ready; else why it cannot run here */
    void (*stop)(void);
    const char *(*url)(enum contract_url which);
    const char *(*schema)(void); /* for config.schema */
    /* From now on this process goes to the number-th node of those in DBLOCK_TEST_GALERA, if the
     * database is on one of them. May be NULL. */
    void (*go_to_node)(unsigned number);
    /* Where the server listens on 127.0.0.1; and from now on this process goes to that port. */
    unsigned (*port)(void);
    void (*go_to_port)(unsigned port);
    const char *secret;          /* a password that no message may contain */

    enum contract_view row_view;      /* what busy, inspect and list tell of a row lock ... */
    enum contract_view advisory_view; /* ... and of an advisory one */
    int breaks_row;                   /* break can end the holder's session */
    int breaks_advisory;
    int needs_tables_for_row;
    int needs_tables_for_advisory;
    int refuses_after_fork; /* a child may not open the tables that its parent had open */

    int has_one_setting_for_all; /* set_read_only() is felt by other tests on the same server */

    void (*drop_tables)(void);
    void (*set_read_only)(int is_read_only);
    void (*set_down)(int is_down);
    void (*cut)(void);                 /* ends all connections of the clients under test */
    void (*cut_one)(unsigned number);  /* the number-th of them, around and around */
    void (*strand)(const char *label); /* as if the clients of that label had died */
    void (*step_clock)(int64_t by_us);
    void (*hurt)(enum contract_hurt what);
    void (*set_silent)(int is_silent); /* nothing gets an answer, and nothing breaks */

    /* The rows of lease and insert. */
    void (*delete_row)(int strategy, const char *name);
    void (*delete_session)(int strategy, const char *name); /* of the holder of the name */
    /* A grant of `name` that the session which holds `like` knows nothing of. */
    void (*plant)(int strategy, const char *name, const char *like);
    /* A transaction that stands on the row (row and advisory: of the token, which has been drawn),
     * as a guarded one does; ends with unguard(). */
    void *(*guard)(int strategy, const char *name);
    void (*unguard)(void *guard);
    unsigned (*n_waiting)(void); /* sessions of the world that wait for a lock at this moment */
    uint64_t (*n_takes)(void); /* that the database has been asked for so far */
    /* The token in the row of the free lease becomes 2^53. */
    void (*damage_token)(const char *name);
    /* Two hours pass for that name, if it is free, and since all tokens of row and advisory. */
    void (*age)(const char *name);
};

extern const struct contract_database contract_sim;
extern const struct contract_database contract_sqlite;
extern const struct contract_database contract_pgsql;
extern const struct contract_database contract_mysql;

/* The purge, as often as it takes. */
dblock_status contract_purge(
    const struct contract_database *database, struct dblock_error *reterr);

/* A word that no other process uses: letters and digits, at most 31. */
const char *contract_word(void);

#endif
