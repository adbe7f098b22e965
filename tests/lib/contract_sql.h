/* SPDX-License-Identifier: MIT */
/* contract_sql.h - what the fixtures of the three real databases do to the rows
 * behind the library's back. The tables have the same columns everywhere; what
 * differs is said in struct contract_sql. */
#ifndef DBLOCK_TEST_CONTRACT_SQL_H
#define DBLOCK_TEST_CONTRACT_SQL_H

#include <stddef.h>

struct contract_sql {
    void (*run)(const char *statement); /* aborts the test program if that fails */
    const char *blob_begin;             /* before and after the hexadecimal digits of bytes */
    const char *blob_end;
    const char *tables;    /* a prefix: "schema." or "" */
    const char *two_hours; /* to subtract from `since` */
    const char *row_time;  /* column of dblock_row; NULL: there is no such table */
};

void contract_sql_delete_row(const struct contract_sql *sql, int strategy, const char *name);
void contract_sql_delete_session(const struct contract_sql *sql, int strategy, const char *name);
void contract_sql_plant(
    const struct contract_sql *sql, int strategy, const char *name, const char *like);
void contract_sql_damage_token(const struct contract_sql *sql, const char *name);
void contract_sql_age(const struct contract_sql *sql, const char *name);

/* "dblock_lease"; and bytes as a literal, which `text` has room for. */
const char *contract_sql_table(int strategy);
/* What a guarded transaction locks: the table, and a condition up to the name. */
const char *contract_sql_guarded(int strategy);
void contract_sql_blob(
    const struct contract_sql *sql, const char *bytes, char *text, size_t text_size);

#endif
