/* SPDX-License-Identifier: MIT */
/* mysql_target.c - from mysql://user:password@host:port/database?... to a target.
 *
 * Parses strictly: what is not understood is an error that names its place, never
 * its value before the "@", where the password is. Opens nothing (see
 * mysql_connection.c). */
#include "mysql_target.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <mysql.h>

#include "mysql_bell.h"

#define HINT_URL "mysql://user:password@host:port/database?socket=PATH&ssl-mode=REQUIRED"

struct parameter {
    const char *name;
    size_t offset; /* of the char * in the target */
};

static const struct parameter parameters[] = {
    { "socket", offsetof(struct dblock_target, socket) },
    { "ssl-ca", offsetof(struct dblock_target, ssl_ca) },
    { "ssl-cert", offsetof(struct dblock_target, ssl_cert) },
    { "ssl-key", offsetof(struct dblock_target, ssl_key) },
    { "option-file", offsetof(struct dblock_target, option_file) },
    { "option-group", offsetof(struct dblock_target, option_group) },
};

static const char *const tls_names[] = { NULL, "DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA",
    "VERIFY_IDENTITY" };

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* Both client libraries may set SIGPIPE to be ignored when they start. That is the
 * application's to decide: what was set before is put back. */
static void start_library(void)
{
    struct sigaction before;
    int is_known = sigaction(SIGPIPE, NULL, &before) == 0;

    (void)mysql_library_init(0, NULL, NULL);
    if (is_known)
        (void)sigaction(SIGPIPE, &before, NULL);
}

static dblock_status fail_memory(struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "cannot open a target: out of memory");
}

static int read_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* Copies `size` bytes, %XX decoded. `part` names the place in messages. */
static dblock_status copy_decoded(const char *text, size_t size, const char *part,
    char **ret_copy, struct dblock_error *reterr)
{
    char *copy = malloc(size + 1);
    size_t n = 0;
    size_t i;

    if (copy == NULL)
        return fail_memory(reterr);
    for (i = 0; i < size; ++i) {
        if (text[i] == '%') {
            int high = i + 1 < size ? read_hex_digit(text[i + 1]) : -1;
            int low = i + 2 < size ? read_hex_digit(text[i + 2]) : -1;

            if (high < 0 || low < 0 || high + low == 0) {
                free(copy);
                return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
                    "write a percent sign as %25",
                    "mysql URL: the %s has a %% that is not followed by two hex digits", part);
            }
            copy[n++] = (char)(high * 16 + low);
            i += 2;
        } else {
            copy[n++] = text[i];
        }
    }
    copy[n] = 0;
    free(*ret_copy);
    *ret_copy = copy;
    return DBLOCK_OK;
}

static dblock_status parse_port(
    struct dblock_target *target, const char *text, size_t size, struct dblock_error *reterr)
{
    unsigned int port = 0;
    size_t i;

    for (i = 0; i < size && i < 6 && text[i] >= '0' && text[i] <= '9'; ++i)
        port = port * 10 + (unsigned int)(text[i] - '0');
    if (i != size || size == 0 || port == 0 || port > 65535)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, HINT_URL,
            "mysql URL: the port is not a number from 1 to 65535");
    target->port = port;
    return DBLOCK_OK;
}

static dblock_status parse_host(
    struct dblock_target *target, const char *text, size_t size, struct dblock_error *reterr)
{
    const char *end = text + size;
    const char *host_end;
    const char *after;

    if (size > 0 && text[0] == '[') {
        host_end = memchr(text, ']', size);
        if (host_end == NULL)
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "mysql://user@[::1]:3306/database",
                "mysql URL: the host begins with [ and has no ]");
        ++text;
        after = host_end + 1;
    } else {
        host_end = memchr(text, ':', size);
        if (host_end == NULL)
            host_end = end;
        after = host_end;
    }
    if (after < end) {
        dblock_status status;

        if (*after != ':')
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, HINT_URL,
                "mysql URL: something that is not a port follows the host");
        status = parse_port(target, after + 1, (size_t)(end - after - 1), reterr);
        if (status != DBLOCK_OK)
            return status;
    }
    if (host_end == text)
        return DBLOCK_OK;
    return copy_decoded(text, (size_t)(host_end - text), "host", &target->host, reterr);
}

/* user:password@host:port */
static dblock_status parse_authority(
    struct dblock_target *target, const char *text, size_t size, struct dblock_error *reterr)
{
    const char *at = NULL;
    const char *colon;
    dblock_status status;
    size_t i;

    for (i = 0; i < size; ++i) /* the last one: a password may have it unescaped */
        if (text[i] == '@')
            at = text + i;
    if (at != NULL) {
        size_t login = (size_t)(at - text);

        colon = memchr(text, ':', login);
        if (colon != NULL) {
            status = copy_decoded(
                colon + 1, (size_t)(at - colon - 1), "password", &target->password, reterr);
            if (status != DBLOCK_OK)
                return status;
            login = (size_t)(colon - text);
        }
        if (login > 0) {
            status = copy_decoded(text, login, "user", &target->user, reterr);
            if (status != DBLOCK_OK)
                return status;
        }
        size -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    return parse_host(target, text, size, reterr);
}

static dblock_status parse_tls(struct dblock_target *target, struct dblock_error *reterr,
    const char *text, size_t size)
{
    int mode;

    for (mode = MYSQL_TLS_DISABLED; mode <= MYSQL_TLS_VERIFY_IDENTITY; ++mode) {
        if (strlen(tls_names[mode]) == size && strncasecmp(tls_names[mode], text, size) == 0) {
            target->tls = mode;
            return DBLOCK_OK;
        }
    }
    return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
        "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        "mysql URL: ssl-mode=%.*s is none of the modes", (int)size, text);
}

/* A name that may be repeated in a message: what does not look like one may be the rest
 * of a password with an unescaped "?". */
static int is_plain_name(const char *text, size_t size)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") >= size;
}

static dblock_status parse_query(
    struct dblock_target *target, const char *text, struct dblock_error *reterr)
{
    while (*text != 0) {
        size_t size = strcspn(text, "&");
        const char *equals = memchr(text, '=', size);
        size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
        dblock_status status = DBLOCK_OK;
        size_t i;

        if (!is_plain_name(text, name_size))
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
                "write ? as %3F and & as %26 in a password",
                "mysql URL: what follows the ? is not name=value");
        if (equals == NULL)
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, HINT_URL,
                "mysql URL: the parameter \"%.*s\" has no value", (int)name_size, text);
        if (name_size == strlen("ssl-mode") && memcmp(text, "ssl-mode", name_size) == 0) {
            status = parse_tls(target, reterr, equals + 1, size - name_size - 1);
        } else {
            for (i = 0; i < sizeof parameters / sizeof *parameters; ++i)
                if (strlen(parameters[i].name) == name_size &&
                    memcmp(parameters[i].name, text, name_size) == 0)
                    break;
            if (i == sizeof parameters / sizeof *parameters)
                return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
                    "known are socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, option-file and "
                    "option-group",
                    "mysql URL: unknown parameter \"%.*s\"", (int)name_size, text);
            status = copy_decoded(equals + 1, size - name_size - 1, parameters[i].name,
                (char **)(void *)((char *)target + parameters[i].offset), reterr);
        }
        if (status != DBLOCK_OK)
            return status;
        text += size;
        if (*text == '&')
            ++text;
    }
    return DBLOCK_OK;
}

static dblock_status parse_url(
    struct dblock_target *target, const char *url, struct dblock_error *reterr)
{
    const char *text = NULL;
    const char *slash;
    size_t authority;
    dblock_status status;

    if (strncasecmp(url, "mysql://", 8) == 0)
        text = url + 8;
    else if (strncasecmp(url, "mariadb://", 10) == 0)
        text = url + 10;
    if (text == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, HINT_URL,
            "a URL of the mysql driver begins with mysql:// or mariadb://");
    if (strchr(text, '#') != NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "write # as %23",
            "mysql URL: a # that is not escaped");
    authority = strcspn(text, "/?");
    if (strchr(text + authority, '@') != NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "write @ as %40, / as %2F and ? as %3F",
            "mysql URL: an @ behind the host (or the password has a / or a ? that is not escaped)");
    status = parse_authority(target, text, authority, reterr);
    if (status != DBLOCK_OK)
        return status;
    slash = text + authority;
    if (*slash == '/') {
        size_t size = strcspn(slash + 1, "?");

        if (memchr(slash + 1, '/', size) != NULL)
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "write / as %2F",
                "mysql URL: the database has a / (or the password has one that is not escaped)");
        if (size > 0) {
            status = copy_decoded(slash + 1, size, "database", &target->database, reterr);
            if (status != DBLOCK_OK)
                return status;
        }
        slash += 1 + size;
    }
    return *slash == '?' ? parse_query(target, slash + 1, reterr) : DBLOCK_OK;
}

/* A bounded copy; 0 if there is no memory. */
static int copy_text(char **ret_copy, const char *text, size_t size_max)
{
    size_t size = strlen(text) + 1;

    if (size > size_max)
        size = size_max;
    free(*ret_copy);
    *ret_copy = malloc(size);
    if (*ret_copy == NULL)
        return 0;
    dblock_text_copy(*ret_copy, size, text);
    return 1;
}

/* `lent`: in place of the URL. */
static dblock_status open_target(const struct dblock_target_config *config, MYSQL *lent,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    struct dblock_target *target;
    dblock_status status;

    (void)pthread_once(&library_once, start_library);
    target = calloc(1, sizeof *target);
    if (target == NULL)
        return fail_memory(reterr);
    target->bells = mysql_bell_register_new();
    if (target->bells == NULL) {
        status = fail_memory(reterr);
        goto done;
    }
    target->lent = lent;
    atomic_flag_clear(&target->is_lent_used);
    status = lent != NULL ? DBLOCK_OK : parse_url(target, config->url, reterr);
    if (status != DBLOCK_OK)
        goto done;
    if ((config->schema != NULL && !copy_text(&target->database, config->schema, SIZE_MAX)) ||
        !copy_text(&target->client_host, config->host, 256) ||
        !copy_text(&target->label, config->label, DBLOCK_LABEL_MAX + 1)) {
        status = fail_memory(reterr);
        goto done;
    }
    target->pid = config->pid;
    target->connect_timeout_us = config->connect_timeout_us;
    target->io_timeout_us = config->io_timeout_us;
    target->ttl_us = config->ttl_us;
    *ret_target = target;
    target = NULL;
done:
    mysql_target_close(target);
    return status;
}

dblock_status mysql_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    return open_target(config, NULL, ret_target, reterr);
}

dblock_status mysql_target_open_lent(void *mysql, const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    return open_target(config, mysql, ret_target, reterr);
}

void mysql_target_close(struct dblock_target *target)
{
    size_t i;

    if (target == NULL)
        return;
    for (i = 0; i < sizeof parameters / sizeof *parameters; ++i)
        free(*(char **)(void *)((char *)target + parameters[i].offset));
    free(target->host);
    free(target->user);
    free(target->password);
    free(target->database);
    free(target->client_host);
    free(target->label);
    mysql_bell_register_free(target->bells);
    free(target);
}
