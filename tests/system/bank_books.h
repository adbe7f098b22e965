/* SPDX-License-Identifier: MIT */
/* bank_books.h - the accounts of a bank and the history of each, in plain tables. An entry of the
 * history has the number, the balance and the token that it was written with, so that the order of
 * the entries is known, and each must follow from the one before it. */
#ifndef DBLOCK_TEST_BANK_BOOKS_H
#define DBLOCK_TEST_BANK_BOOKS_H

#include "application.h"

enum { BANK_OPENING = 1000000 /* balance of each account at first */ };

struct bank_entry {
    int account;
    int64_t n; /* how many entries it has, with this one */
    int64_t balance;
    int64_t token; /* of its lock; 0: such locks have none */
};

/* Each 0, or a statement failed. */
int bank_open_books(const struct application *application, void *connection, int n_accounts);
/* The newest entry; the token stays. */
int bank_read(const struct application *application, void *connection, struct bank_entry *entry);
/* The entry that follows from `read`: `amount` more. */
int bank_write(const struct application *application, void *connection,
    const struct bank_entry *read, int64_t amount);

/* Accounts whose entries do not follow from one another, or do not come to what it has. */
int64_t bank_count_wrong(const struct application *application, void *connection);
int64_t bank_count_transfers(const struct application *application, void *connection);
int64_t bank_sum(const struct application *application, void *connection);

#endif
