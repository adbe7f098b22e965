/* SPDX-License-Identifier: MIT */
/* pgsql_value.c - see pgsql_value.h. */
#define _DEFAULT_SOURCE /* be64toh */
#include "pgsql_value.h"

#include <endian.h>
#include <stdio.h>

/* Numbers of built-in types, fixed for ever: src/include/catalog/pg_type.dat. */
enum {
    TYPE_BOOL = 16,
    TYPE_BYTEA = PGSQL_TYPE_BYTEA,
    TYPE_INT8 = 20,
    TYPE_INT4 = PGSQL_TYPE_INT4,
    TYPE_TEXT = 25,
    TYPE_BYTEA_ARRAY = 1001,
    TYPE_INT4_ARRAY = 1007,
    TYPE_TIMESTAMPTZ = 1184,
    TYPE_INTERVAL = 1186
};

/* The server counts from 2000. */
#define EPOCH_US INT64_C(946684800000000)
#define TIME_MAX_US (INT64_C(1) << 60) /* the year 38,000 or so */

static void write_64(unsigned char *target, uint64_t number)
{
    number = htobe64(number);
    memcpy(target, &number, sizeof number);
}

static uint64_t read_64(const char *source)
{
    uint64_t number;

    memcpy(&number, source, sizeof number);
    return be64toh(number);
}

static uint32_t read_32(const char *source)
{
    uint32_t number;

    memcpy(&number, source, sizeof number);
    return be32toh(number);
}

static void put(struct pgsql_parameters *parameters, Oid type, const void *value, size_t size)
{
    int i = parameters->n++;

    parameters->types[i] = type;
    parameters->values[i] = value;
    parameters->sizes[i] = (int)size;
}

/* The lowest `size` bytes of it. */
static void put_number(struct pgsql_parameters *parameters, Oid type, uint64_t number, size_t size)
{
    unsigned char *place = parameters->numbers[parameters->n];

    write_64(place, number);
    put(parameters, type, place + 8 - size, size);
}

void pgsql_put_bytes(struct pgsql_parameters *parameters, const void *bytes, size_t size)
{
    put(parameters, TYPE_BYTEA, bytes, size);
}

void pgsql_put_name(struct pgsql_parameters *parameters, const struct dblock_subject *subject)
{
    put(parameters, TYPE_BYTEA, subject->name, subject->name_size);
}

void pgsql_put_token_name(struct pgsql_parameters *parameters, int32_t strategy,
    const struct dblock_subject *subject)
{
    char *text = (char *)parameters->numbers[parameters->n];
    int size;

    if (strategy != DBLOCK_ADVISORY || !subject->has_advisory_id) {
        pgsql_put_name(parameters, subject);
        return;
    }
    size = snprintf(text, PGSQL_NUMBER_SIZE, "#%lld", (long long)subject->advisory_id);
    put(parameters, TYPE_BYTEA, text, (size_t)size);
}

void pgsql_put_id(struct pgsql_parameters *parameters, const unsigned char *id)
{
    put(parameters, TYPE_BYTEA, id, DBLOCK_ID_SIZE);
}

void pgsql_put_array(
    struct pgsql_parameters *parameters, int is_bytes, const void *bytes, size_t size)
{
    put(parameters, is_bytes ? TYPE_BYTEA_ARRAY : TYPE_INT4_ARRAY, bytes, size);
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

void pgsql_put_null_int32(struct pgsql_parameters *parameters)
{
    put(parameters, TYPE_INT4, NULL, 0);
}

void pgsql_put_null_int64(struct pgsql_parameters *parameters)
{
    put(parameters, TYPE_INT8, NULL, 0);
}

void pgsql_put_duration(struct pgsql_parameters *parameters, uint64_t duration_us)
{
    const uint64_t longest_us = (uint64_t)1 << 61;
    unsigned char *place = parameters->numbers[parameters->n];

    write_64(place, duration_us < longest_us ? duration_us : longest_us);
    write_64(place + 8, 0); /* days and months */
    put(parameters, TYPE_INTERVAL, place, 16);
}

void pgsql_put_time(struct pgsql_parameters *parameters, int64_t time_us)
{
    if (time_us < 0)
        time_us = 0;
    put_number(parameters, TYPE_TIMESTAMPTZ, (uint64_t)(time_us - EPOCH_US), 8);
}

struct pgsql_field pgsql_get_field(const PGresult *result, int row, int column)
{
    struct pgsql_field field = { NULL, 0 };

    if (!PQgetisnull(result, row, column)) {
        field.bytes = PQgetvalue(result, row, column);
        field.size = (size_t)PQgetlength(result, row, column);
    }
    return field;
}

/* int32 number of fields; for each int32 type, int32 size (-1 for NULL), and so many bytes. */
static int read_fields(const struct pgsql_field *composite, struct pgsql_field *fields, int n)
{
    const char *place = composite->bytes;
    size_t left = composite->size;
    int i;

    if (left < 4 || read_32(place) < (uint32_t)n)
        return 0;
    place += 4;
    left -= 4;
    for (i = 0; i < n; ++i) {
        int32_t size;

        if (left < 8)
            return 0;
        size = (int32_t)read_32(place + 4);
        place += 8;
        left -= 8;
        if (size < 0)
            continue;
        if ((size_t)size > left)
            return 0;
        fields[i].bytes = place;
        fields[i].size = (size_t)size;
        place += size;
        left -= (size_t)size;
    }
    return 1;
}

void pgsql_field_split(
    const struct pgsql_field *composite, struct pgsql_field *fields, int n)
{
    memset(fields, 0, (size_t)n * sizeof *fields);
    if (composite->bytes != NULL && !read_fields(composite, fields, n))
        memset(fields, 0, (size_t)n * sizeof *fields);
}

int64_t pgsql_field_int64(const struct pgsql_field *field)
{
    return field->size == 8 ? (int64_t)read_64(field->bytes) : 0;
}

int64_t pgsql_field_time(const struct pgsql_field *field)
{
    int64_t time_us;

    if (field->size != 8)
        return 0;
    time_us = (int64_t)read_64(field->bytes);
    if (time_us == INT64_MIN)
        return 0;
    /* an infinite one too is so near that it can be reckoned with */
    if (time_us > TIME_MAX_US)
        return TIME_MAX_US;
    return time_us < -TIME_MAX_US ? -TIME_MAX_US : time_us + EPOCH_US;
}

void pgsql_field_text(const struct pgsql_field *field, char *target, size_t size)
{
    char text[256]; /* longer than any member is */
    size_t length = field->size < sizeof text ? field->size : sizeof text - 1;

    if (length > 0)
        memcpy(text, field->bytes, length);
    text[length] = 0;
    dblock_text_copy(target, size, text);
}

void pgsql_field_id_text(const struct pgsql_field *field, char text[40])
{
    text[0] = 0;
    if (field->size == DBLOCK_ID_SIZE)
        dblock_id_text((const unsigned char *)field->bytes, text);
}

int64_t pgsql_get_int64(const PGresult *result, int row, int column)
{
    /* of NULL it is 0 */
    return PQgetlength(result, row, column) == 8 ? (int64_t)read_64(PQgetvalue(result, row, column))
                                                 : 0;
}

int32_t pgsql_get_int32(const PGresult *result, int row, int column)
{
    return PQgetlength(result, row, column) == 4 ? (int32_t)read_32(PQgetvalue(result, row, column))
                                                 : 0;
}

int pgsql_get_bool(const PGresult *result, int row, int column)
{
    return PQgetlength(result, row, column) == 1 && PQgetvalue(result, row, column)[0] != 0;
}

char pgsql_get_letter(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? 0 : PQgetvalue(result, row, column)[0];
}

int64_t pgsql_get_time(const PGresult *result, int row, int column)
{
    struct pgsql_field field = pgsql_get_field(result, row, column);

    return pgsql_field_time(&field);
}

void pgsql_get_text(const PGresult *result, int row, int column, char *target, size_t size)
{
    /* libpq puts a zero behind every value, bytes too */
    dblock_text_copy(target, size,
        PQgetisnull(result, row, column) ? "" : PQgetvalue(result, row, column));
}

void pgsql_get_id_text(const PGresult *result, int row, int column, char text[40])
{
    struct pgsql_field field = pgsql_get_field(result, row, column);

    pgsql_field_id_text(&field, text);
}

int pgsql_is_id(const PGresult *result, int row, int column, const unsigned char *id)
{
    return PQgetlength(result, row, column) == DBLOCK_ID_SIZE &&
        memcmp(PQgetvalue(result, row, column), id, DBLOCK_ID_SIZE) == 0;
}
