/* SPDX-License-Identifier: MIT */
/* pgsql_value.c - see pgsql_value.h. */
#include "pgsql_value.h"

/* Numbers of built-in types, fixed for ever: src/include/catalog/pg_type.dat. */
enum {
    TYPE_BOOL = 16,
    TYPE_BYTEA = 17,
    TYPE_INT8 = 20,
    TYPE_INT4 = 23,
    TYPE_TEXT = 25,
    TYPE_TIMESTAMPTZ = 1184,
    TYPE_INTERVAL = 1186
};

/* The server counts from 2000. */
#define EPOCH_US INT64_C(946684800000000)

static void write_number(unsigned char *target, uint64_t number, int size)
{
    int i;

    for (i = size - 1; i >= 0; --i) {
        target[i] = (unsigned char)number;
        number >>= 8;
    }
}

static uint64_t read_number(const char *source, int size)
{
    uint64_t number = 0;
    int i;

    for (i = 0; i < size; ++i)
        number = number << 8 | (unsigned char)source[i];
    return number;
}

static void put(struct pgsql_parameters *parameters, Oid type, const void *value, size_t size)
{
    int i = parameters->n++;

    parameters->types[i] = type;
    parameters->values[i] = value;
    parameters->sizes[i] = (int)size;
}

static void put_number(struct pgsql_parameters *parameters, Oid type, uint64_t number, int size)
{
    unsigned char *place = parameters->numbers[parameters->n];

    write_number(place, number, size);
    put(parameters, type, place, (size_t)size);
}

void pgsql_put_bytes(struct pgsql_parameters *parameters, const void *bytes, size_t size)
{
    put(parameters, TYPE_BYTEA, bytes, size);
}

void pgsql_put_name(struct pgsql_parameters *parameters, const struct dblock_subject *subject)
{
    put(parameters, TYPE_BYTEA, subject->name, subject->name_size);
}

void pgsql_put_id(struct pgsql_parameters *parameters, const unsigned char *id)
{
    put(parameters, TYPE_BYTEA, id, DBLOCK_ID_SIZE);
}

void pgsql_put_text(struct pgsql_parameters *parameters, const char *text)
{
    put(parameters, TYPE_TEXT, text, text != NULL ? strlen(text) : 0);
}

void pgsql_put_bool(struct pgsql_parameters *parameters, int value)
{
    put_number(parameters, TYPE_BOOL, value != 0, 1);
}

void pgsql_put_int32(struct pgsql_parameters *parameters, int32_t value)
{
    put_number(parameters, TYPE_INT4, (uint64_t)(int64_t)value, 4);
}

void pgsql_put_int64(struct pgsql_parameters *parameters, int64_t value)
{
    put_number(parameters, TYPE_INT8, (uint64_t)value, 8);
}

void pgsql_put_null_int64(struct pgsql_parameters *parameters)
{
    put(parameters, TYPE_INT8, NULL, 0);
}

void pgsql_put_duration(struct pgsql_parameters *parameters, uint64_t duration_us)
{
    const uint64_t longest_us = (uint64_t)1 << 61;
    unsigned char *place = parameters->numbers[parameters->n];

    write_number(place, duration_us < longest_us ? duration_us : longest_us, 8);
    write_number(place + 8, 0, 8); /* days and months */
    put(parameters, TYPE_INTERVAL, place, 16);
}

void pgsql_put_time(struct pgsql_parameters *parameters, int64_t time_us)
{
    if (time_us < 0)
        time_us = 0;
    put_number(parameters, TYPE_TIMESTAMPTZ, (uint64_t)(time_us - EPOCH_US), 8);
}

int64_t pgsql_get_int64(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column))
        return 0;
    return (int64_t)read_number(PQgetvalue(result, row, column), 8);
}

int32_t pgsql_get_int32(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column))
        return 0;
    return (int32_t)(uint32_t)read_number(PQgetvalue(result, row, column), 4);
}

int pgsql_get_bool(const PGresult *result, int row, int column)
{
    return !PQgetisnull(result, row, column) && PQgetvalue(result, row, column)[0] != 0;
}

int64_t pgsql_get_time(const PGresult *result, int row, int column)
{
    int64_t time_us;

    if (PQgetisnull(result, row, column))
        return 0;
    time_us = (int64_t)read_number(PQgetvalue(result, row, column), 8);
    if (time_us == INT64_MIN)
        return 0;
    return time_us > INT64_MAX - EPOCH_US ? INT64_MAX : time_us + EPOCH_US;
}

void pgsql_get_text(const PGresult *result, int row, int column, char *target, size_t size)
{
    /* libpq puts a zero behind every value, bytes too */
    dblock_text_copy(target, size, PQgetvalue(result, row, column));
}

void pgsql_get_id_text(const PGresult *result, int row, int column, char text[40])
{
    text[0] = 0;
    if (PQgetlength(result, row, column) == DBLOCK_ID_SIZE)
        dblock_id_text((const unsigned char *)PQgetvalue(result, row, column), text);
}

int pgsql_is_id(const PGresult *result, int row, int column, const unsigned char *id)
{
    return PQgetlength(result, row, column) == DBLOCK_ID_SIZE &&
        memcmp(PQgetvalue(result, row, column), id, DBLOCK_ID_SIZE) == 0;
}
