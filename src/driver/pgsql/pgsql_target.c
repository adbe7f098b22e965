/* SPDX-License-Identifier: MIT */
/* pgsql_target.c - taking a URL apart, without I/O. What a URL leaves open is
 * filled in by libpq when it connects (PGHOST, ~/.pgpass, service files). */
#include "pgsql_target.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_DEFAULTS 8 /* options that set_defaults() may add, and the closing NULL */

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

/* To libpq a password ends at the first "@", and at the first "/": the rest of one that has them as
 * they are becomes a host or a database, which messages name. */
static int is_ambiguous(const char *url)
{
    const char *text = strstr(url, "://");
    const char *host, *path;

    if (text == NULL || text != url + strspn(url, "abcdefghijklmnopqrstuvwxyz"))
        return 0;
    text += 3;
    host = text + strcspn(text, "@/");
    host = *host == '@' ? host + 1 : text;
    path = host + strcspn(host, "/?");
    if (memchr(host, '@', (size_t)(path - host)) != NULL)
        return 1;
    return *path == '/' && strcspn(path + 1, "@/") < strcspn(path + 1, "?");
}

/* What libpq says about a URL quotes pieces of it, and any piece may be of the password. */
static void copy_without_quotations(char *target, size_t size, const char *source)
{
    size_t length = 0;

    while (*source != 0 && *source != '\n' && length + 6 < size) {
        if (*source != '"') {
            target[length++] = *source++;
            continue;
        }
        if (source[1] != 0 && source[2] == '"' && strchr("=:/@", source[1]) != NULL) {
            memcpy(target + length, source, 3);
            length += 3;
            source += 3;
            continue;
        }
        memcpy(target + length, "\"...\"", 5);
        length += 5;
        source = strrchr(source, '"') + 1;
    }
    target[length] = 0;
}

static char *quote_identifier(const char *name)
{
    char *quoted = malloc(2 * strlen(name) + 3);
    char *end = quoted;

    if (quoted == NULL)
        return NULL;
    *end++ = '"';
    for (; *name != 0; ++name) {
        if (*name == '"')
            *end++ = '"';
        *end++ = *name;
    }
    *end++ = '"';
    *end = 0;
    return quoted;
}

/* The text with each "dblock_schema" replaced. */
static char *write_schema(const char *text, const char *schema)
{
    static const char mark[] = "dblock_schema";
    const size_t mark_size = sizeof mark - 1;
    size_t schema_size = strlen(schema);
    size_t n_marks = 0;
    const char *place;
    char *result, *end;

    for (place = strstr(text, mark); place != NULL; place = strstr(place + mark_size, mark))
        ++n_marks;
    result = malloc(strlen(text) + n_marks * schema_size + 1);
    if (result == NULL)
        return NULL;
    end = result;
    while ((place = strstr(text, mark)) != NULL) {
        memcpy(end, text, (size_t)(place - text));
        end += place - text;
        memcpy(end, schema, schema_size);
        end += schema_size;
        text = place + mark_size;
    }
    memcpy(end, text, strlen(text) + 1);
    return result;
}

/* The schema stands in statements as an identifier, also inside of '...' and of $dblock$...$dblock$,
 * and in texts with marks like @NAME@ that are filled in later (joined.sql). */
static int is_schema_fit(const char *schema)
{
    const char *at = strchr(schema, '@');

    return *schema != 0 && strlen(schema) < 64 && strpbrk(schema, "'\\") == NULL &&
        strstr(schema, "$dblock$") == NULL && (at == NULL || strchr(at + 1, '@') == NULL);
}

static const char *find_option(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword != NULL; ++options)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val != NULL && options->val[0] != 0 ? options->val : NULL;
    return NULL;
}

/* libpq would find out when it connects. */
static int are_ports(const char *text)
{
    for (; text != NULL; text += *text == ',') {
        char *end = NULL;
        long port = strtol(text, &end, 10);

        if (end != text && (port < 1 || port > 65535))
            return 0;
        if (*end != 0 && *end != ',')
            return 0;
        text = end;
        if (*text == 0)
            break;
    }
    return 1;
}

static int add_option(struct dblock_target *target, size_t *n, const char *keyword,
    const char *value)
{
    target->keywords[*n] = copy_text(keyword);
    target->values[*n] = copy_text(value);
    if (target->keywords[*n] == NULL || target->values[*n] == NULL) {
        free(target->keywords[*n]);
        free(target->values[*n]);
        target->keywords[*n] = NULL;
        target->values[*n] = NULL;
        return -1;
    }
    ++*n;
    return 0;
}

/* What the URL does not say: how a dead peer is noticed on this side, and which of several hosts. */
static int add_defaults(struct dblock_target *target, size_t *n, const PQconninfoOption *options)
{
    const char *host = find_option(options, "host");
    const char *hostaddr = find_option(options, "hostaddr");
    uint64_t idle_s = target->io_timeout_us / 2000000;
    char number[32];
    int fault = 0;

    if (idle_s < 1)
        idle_s = 1;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)idle_s);
    if (find_option(options, "keepalives_idle") == NULL)
        fault |= add_option(target, n, "keepalives_idle", number);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)(idle_s / 4 + 1));
    if (find_option(options, "keepalives_interval") == NULL)
        fault |= add_option(target, n, "keepalives_interval", number);
    if (find_option(options, "keepalives_count") == NULL)
        fault |= add_option(target, n, "keepalives_count", "3");
    (void)snprintf(
        number, sizeof number, "%llu", (unsigned long long)(target->io_timeout_us / 1000));
    if (find_option(options, "tcp_user_timeout") == NULL)
        fault |= add_option(target, n, "tcp_user_timeout", number);
    if (find_option(options, "client_encoding") == NULL)
        fault |= add_option(target, n, "client_encoding", "UTF8");
    if (find_option(options, "target_session_attrs") == NULL &&
        ((host != NULL && strchr(host, ',') != NULL) ||
            (hostaddr != NULL && strchr(hostaddr, ',') != NULL)))
        fault |= add_option(target, n, "target_session_attrs", "read-write");
    return fault;
}

static int copy_options(struct dblock_target *target, const PQconninfoOption *options)
{
    const PQconninfoOption *option;
    size_t n_options = 0;
    size_t n = 0;

    for (option = options; option->keyword != NULL; ++option)
        ++n_options;
    target->keywords = calloc(n_options + N_DEFAULTS, sizeof *target->keywords);
    target->values = calloc(n_options + N_DEFAULTS, sizeof *target->values);
    if (target->keywords == NULL || target->values == NULL)
        return -1;
    for (option = options; option->keyword != NULL; ++option)
        if (option->val != NULL && option->val[0] != 0 &&
            add_option(target, &n, option->keyword, option->val) != 0)
            return -1;
    if (add_defaults(target, &n, options) != 0)
        return -1;
    target->names_application = find_option(options, "application_name") != NULL;
    if (!target->names_application && add_option(target, &n, "application_name", "dblock") != 0)
        return -1;
    target->n_values = n;
    return 0;
}

static int fill(struct dblock_target *target, const struct dblock_target_config *config,
    const char *schema, const PQconninfoOption *options)
{
    size_t i;

    atomic_flag_clear(&target->is_alarm_used);
    target->pid = config->pid;
    target->io_timeout_us = config->io_timeout_us;
    target->ttl_us = config->ttl_us;
    target->host = copy_text(config->host);
    target->label = copy_text(config->label);
    target->schema = copy_text(schema);
    target->schema_quoted = quote_identifier(schema);
    if (target->host == NULL || target->label == NULL || target->schema == NULL ||
        target->schema_quoted == NULL)
        return -1;
    for (i = 0; i < N_STATEMENTS; ++i) {
        target->texts[i] = write_schema(pgsql_texts[i].text, target->schema_quoted);
        if (target->texts[i] == NULL)
            return -1;
    }
    return copy_options(target, options);
}

dblock_status pgsql_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    const char *schema = config->schema != NULL ? config->schema : "public";
    struct dblock_target *target = NULL;
    PQconninfoOption *options = NULL;
    char *complaint = NULL;
    char reason[256];
    dblock_status status = DBLOCK_OK;

    if (!is_schema_fit(schema))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "config.schema: a name of 1 to 63 bytes without ', \\, $dblock$ and a second @ is "
            "needed");
    if (is_ambiguous(config->url))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "write @ as %40 and / as %2F",
            "not a PostgreSQL URL: its host or database has a @ or a / (or the password has one "
            "that is not escaped)");
    options = PQconninfoParse(config->url, &complaint);
    if (options == NULL && complaint != NULL && strcmp(complaint, "out of memory\n") == 0) {
        status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "no memory for the URL");
        goto done;
    }
    if (options == NULL && complaint != NULL) {
        copy_without_quotations(reason, sizeof reason, complaint);
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "it looks like postgresql://USER@HOST:PORT/DATABASE", "not a PostgreSQL URL: %s",
            reason);
        goto done;
    }
    if (options != NULL && !are_ports(find_option(options, "port"))) {
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            "not a PostgreSQL URL: the port is not a number from 1 to 65535");
        goto done;
    }
    target = calloc(1, sizeof *target);
    if (target != NULL)
        target->alarm.fd = -1;
    if (options == NULL || target == NULL || fill(target, config, schema, options) != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
        goto done;
    }
    *ret_target = target;
    target = NULL;
done:
    pgsql_target_close(target);
    PQfreemem(complaint);
    PQconninfoFree(options);
    return status;
}

void pgsql_target_close(struct dblock_target *target)
{
    size_t i;

    if (target == NULL)
        return;
    pgsql_alarm_close(&target->alarm);
    for (i = 0; target->keywords != NULL && target->keywords[i] != NULL; ++i)
        free(target->keywords[i]);
    for (i = 0; target->values != NULL && target->values[i] != NULL; ++i)
        free(target->values[i]);
    free(target->keywords);
    free(target->values);
    for (i = 0; i < N_STATEMENTS; ++i)
        free(target->texts[i]);
    free(target->schema);
    free(target->schema_quoted);
    free(target->host);
    free(target->label);
    free(target);
}
