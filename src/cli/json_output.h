/* SPDX-License-Identifier: MIT */
/* json_output.h - the objects of dblock.schema.json, built with jansson. Every
 * function that returns an object gives it away; NULL if there is no memory, which
 * jansson's setters accept and answer with a failure of their own. */
#ifndef CLI_JSON_OUTPUT_H
#define CLI_JSON_OUTPUT_H

#include <dblock/dblock.h>

#include <jansson.h>
#include <stdio.h>

/* {"dblock": 1, "kind": kind} */
json_t *json_document(const char *kind);

/* Sets a member to a string; to null for NULL or "". Bytes that are no UTF-8 become
 * U+FFFD: names cannot contain any, hosts and labels of others might. */
void json_set_text(json_t *object, const char *key, const char *text);

/* To an integer, or to null for 0. */
void json_set_number(json_t *object, const char *key, int64_t number);

/* To a time, or to null for 0. */
void json_set_time(json_t *object, const char *key, int64_t us);

json_t *json_grant(const struct dblock_grant *grant);

/* null if `error` is NULL. */
json_t *json_error(const struct dblock_error *error);

/* Writes the document as one line and frees it. Returns 0, or EXIT_CODE_MACHINE
 * after a message: also if `file` could not be written. */
int json_print(json_t *document, FILE *file);

#endif
