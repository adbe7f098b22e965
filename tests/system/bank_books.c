/* SPDX-License-Identifier: MIT */
/* bank_books.c - see bank_books.h. */
#include "bank_books.h"

#include <stdio.h>

enum { ENTRIES_MAX = 100000 /* of an account; read with its balance as one number */ };

int bank_open_books(const struct application *application, void *connection, int n_accounts)
{
    static const char *const statements[] = {
        "CREATE TABLE IF NOT EXISTS bank_account (id INTEGER NOT NULL PRIMARY KEY,"
        " n INTEGER NOT NULL, balance BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS bank_history (account INTEGER NOT NULL, n INTEGER NOT NULL,"
        " amount BIGINT NOT NULL, balance BIGINT NOT NULL, token BIGINT NOT NULL)",
        "DELETE FROM bank_account", "DELETE FROM bank_history" };
    char sql[160];
    size_t k;
    int i;

    for (k = 0; k < sizeof statements / sizeof statements[0]; ++k)
        if (application->run(connection, statements[k]) != 0)
            return -1;
    for (i = 0; i < n_accounts; ++i) {
        (void)snprintf(sql, sizeof sql,
            "INSERT INTO bank_account (id, n, balance) VALUES (%d, 0, %d)", i, BANK_OPENING);
        if (application->run(connection, sql) != 0)
            return -1;
    }
    return 0;
}

int bank_read(const struct application *application, void *connection, struct bank_entry *entry)
{
    char sql[120];
    int64_t both;

    (void)snprintf(sql, sizeof sql, "SELECT balance * %d + n FROM bank_account WHERE id = %d",
        ENTRIES_MAX, entry->account);
    both = application->number(connection, sql);
    entry->n = both % ENTRIES_MAX;
    entry->balance = both / ENTRIES_MAX;
    return both >= 0 ? 0 : -1;
}

int bank_write(const struct application *application, void *connection,
    const struct bank_entry *read, int64_t amount)
{
    char sql[240];

    (void)snprintf(sql, sizeof sql, "UPDATE bank_account SET n = %lld, balance = %lld"
        " WHERE id = %d", (long long)read->n + 1, (long long)(read->balance + amount), read->account);
    if (application->run(connection, sql) != 0)
        return -1;
    (void)snprintf(sql, sizeof sql,
        "INSERT INTO bank_history (account, n, amount, balance, token)"
        " VALUES (%d, %lld, %lld, %lld, %lld)", read->account, (long long)read->n + 1,
        (long long)amount, (long long)(read->balance + amount), (long long)read->token);
    return application->run(connection, sql);
}

/* lag() of MariaDB takes no default. */
int64_t bank_count_wrong(const struct application *application, void *connection)
{
    char sql[1200];

    (void)snprintf(sql, sizeof sql,
        "SELECT count(DISTINCT id) FROM (SELECT e.account AS id FROM (SELECT account, n, amount,"
        " balance, token, lag(n) OVER (PARTITION BY account ORDER BY n, token) AS n_before,"
        " lag(balance) OVER (PARTITION BY account ORDER BY n, token) AS balance_before,"
        " lag(token) OVER (PARTITION BY account ORDER BY n, token) AS token_before"
        " FROM bank_history) AS e WHERE e.n <> coalesce(e.n_before, 0) + 1"
        " OR e.balance <> coalesce(e.balance_before, %d) + e.amount OR e.token < e.token_before"
        " UNION ALL SELECT a.id FROM bank_account AS a LEFT JOIN (SELECT account, count(*) AS n,"
        " sum(amount) AS total FROM bank_history GROUP BY account) AS h ON h.account = a.id"
        " WHERE a.n <> coalesce(h.n, 0) OR a.balance - %d <> coalesce(h.total, 0)) AS wrong",
        BANK_OPENING, BANK_OPENING);
    return application->number(connection, sql);
}

int64_t bank_count_transfers(const struct application *application, void *connection)
{
    return application->number(connection, "SELECT count(*) / 2 FROM bank_history");
}

int64_t bank_sum(const struct application *application, void *connection)
{
    return application->number(connection, "SELECT sum(balance) FROM bank_account");
}
