/* SPDX-License-Identifier: MIT */
/* pgsql_value.h - values in the server's binary format: parameters on their way
 * in, columns on their way out. Nothing is allocated: a parameter points at the
 * caller's bytes, or at some of its own. */
#ifndef DBLK_PGSQL_VALUE_H
#define DBLK_PGSQL_VALUE_H

#include <dblock/sys/driver.h>

#include <libpq-fe.h>
#include <string.h>

enum { PGSQL_PARAMETERS_MAX = 13, PGSQL_NUMBER_SIZE = 24 };

enum { PGSQL_TYPE_BYTEA = 17, PGSQL_TYPE_INT4 = 23 }; /* for the elements of arrays */

struct pgsql_parameters {
    int n;
    Oid types[PGSQL_PARAMETERS_MAX];
    const char *values[PGSQL_PARAMETERS_MAX];
    int sizes[PGSQL_PARAMETERS_MAX];
    unsigned char numbers[PGSQL_PARAMETERS_MAX][PGSQL_NUMBER_SIZE];
};

/* Each adds the next parameter. A NULL pointer is NULL. */
void pgsql_put_name(struct pgsql_parameters *parameters, const struct dblock_subject *subject);
/* By which the token of a row or advisory lock is kept: the name, or "#ID" of the given id. */
void pgsql_put_token_name(struct pgsql_parameters *parameters, int32_t strategy,
    const struct dblock_subject *subject);
void pgsql_put_bytes(struct pgsql_parameters *parameters, const void *bytes, size_t size);
void pgsql_put_id(struct pgsql_parameters *parameters, const unsigned char *id);
/* An array of bytea or of int4 in binary form. */
void pgsql_put_array(
    struct pgsql_parameters *parameters, int is_bytes, const void *bytes, size_t size);
void pgsql_put_text(struct pgsql_parameters *parameters, const char *text);
void pgsql_put_bool(struct pgsql_parameters *parameters, int value);
void pgsql_put_int32(struct pgsql_parameters *parameters, int32_t value);
void pgsql_put_int64(struct pgsql_parameters *parameters, int64_t value);
void pgsql_put_null_int32(struct pgsql_parameters *parameters);
void pgsql_put_null_int64(struct pgsql_parameters *parameters);
/* An interval, held below what overflows when a clock is added. */
void pgsql_put_duration(struct pgsql_parameters *parameters, uint64_t duration_us);
/* A timestamptz from microseconds since 1970. */
void pgsql_put_time(struct pgsql_parameters *parameters, int64_t time_us);

/* One value: of a column, or of a composite in a column. */
struct pgsql_field {
    const char *bytes; /* NULL for NULL */
    size_t size;
};

struct pgsql_field pgsql_get_field(const PGresult *result, int row, int column);
/* The first `n` fields of a composite; all NULL if it is NULL or has fewer. */
void pgsql_field_split(
    const struct pgsql_field *composite, struct pgsql_field *fields, int n);
/* As pgsql_get_... below. */
int64_t pgsql_field_int64(const struct pgsql_field *field);
int64_t pgsql_field_time(const struct pgsql_field *field);
void pgsql_field_text(const struct pgsql_field *field, char *target, size_t size);
void pgsql_field_id_text(const struct pgsql_field *field, char text[40]);

/* Whatever the server answers: 0 for NULL, for what is not there, and for what is of another size
 * than the type. */
int64_t pgsql_get_int64(const PGresult *result, int row, int column);
int32_t pgsql_get_int32(const PGresult *result, int row, int column);
int pgsql_get_bool(const PGresult *result, int row, int column);
/* The first one of a text. */
char pgsql_get_letter(const PGresult *result, int row, int column);
/* A timestamptz as microseconds since 1970; 0 for NULL and -infinity. */
int64_t pgsql_get_time(const PGresult *result, int row, int column);
/* Text or bytes into a fixed member, cut if they are longer; "" for NULL. */
void pgsql_get_text(const PGresult *result, int row, int column, char *target, size_t size);
/* An owner as hex digits; "" for NULL. */
void pgsql_get_id_text(const PGresult *result, int row, int column, char text[40]);
int pgsql_is_id(const PGresult *result, int row, int column, const unsigned char *id);

#endif
