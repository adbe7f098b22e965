/* SPDX-License-Identifier: MIT */
/* application.h - the application's own connection to the database of the contract
 * suite, with the tables of dblock and its own in one schema; and the guard on it. */
#ifndef DBLOCK_TEST_APPLICATION_H
#define DBLOCK_TEST_APPLICATION_H

#include <stddef.h>
#include <stdint.h>

#include <dblock/dblock.h>

#include "contract_database.h"

enum { APPLICATION_CONNECTS = 5 /* before open() gives up, as where the network is bad */ };

struct application {
    const struct contract_database *database;
    const char *title;          /* NULL: that of the database */
    const char *begin;          /* a transaction that reads what is committed */
    const char *begin_snapshot; /* one that reads what was committed when it first read */
    const char *plain_guard;    /* a select; % is the name, # the token. NULL: see has_function */
    const char *plain_row_guard; /* the same of a row lock's token */
    int is_guard_a_change;      /* plain_guard: one row is changed, not found */
    int has_function;           /* dblock_guard(name, token) */
    unsigned joins;             /* 1 << strategy: of those that acquire_in takes */
    int savepoint_frees;        /* surely, a lock that was joined after it, if it is undone */
    int has_one_writer;         /* of the whole database: heartbeats wait for a transaction */
    void *(*open)(void);
    void (*close)(void *connection);
    /* 0, or the statement failed. */
    int (*run)(void *connection, const char *sql);
    /* The first column of the only row; -1: failed, or no row. */
    int64_t (*number)(void *connection, const char *sql);
    dblock_status (*guard)(dblock_lock *lock, void *connection, struct dblock_error *error);
    dblock_status (*release_in)(dblock_lock *lock, void *connection, struct dblock_error *error);
    dblock_status (*watch)(dblock_lock *lock, void *connection, struct dblock_error *error);
    void (*unwatch)(dblock_lock *lock);
    const char *pause; /* a select that gives 0 after # milliseconds, unless it is cancelled */
    dblock_status (*acquire_in)(dblock_client *client, void *connection, const char *name,
        const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *error);
    dblock_status (*open_on)(void *connection, const struct dblock_config *config,
        dblock_client **ret_client, struct dblock_error *error);
};

/* Those that are built in, ended by NULL. */
extern const struct application *const applications[];

/* 0, or the program has said why not (and shall exit with 77). The tables of dblock are made. */
int application_start(const struct application *application);

/* A table "account" with one row: id 1, balance 100. 0, or not. */
int application_set_account(const struct application *application, void *connection);

/* The statement with the name for each % and the token for each #. */
void application_fill(
    char *sql, size_t size, const char *format, const char *name, int64_t token);

/* Two clients and two connections for a test, the first connection with the account; 0, or it is
 * not usable. What is there of them is closed after it: connections first, as what a test that failed
 * has left open keeps others out. */
int application_open_pair(const struct application *application, dblock_client *clients[2],
    void *connections[2], struct dblock_error *reterr);
void application_close_connections(const struct application *application, void *const connections[2]);

#endif
