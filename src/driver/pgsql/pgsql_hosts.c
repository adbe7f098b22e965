/* SPDX-License-Identifier: MIT */
/* pgsql_hosts.c - see pgsql_hosts.h. A host of two addresses becomes two hosts of one name, which
 * libpq tries one after the other as it would have done. What a service file names is not known
 * here, and is left to libpq. */
#include "pgsql_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list under way; never longer than was foreseen. */
struct list {
    char *text;
    size_t size;
    size_t length;
    int is_begun;
};

struct search {
    const char *host; /* what is left of the lists */
    const char *port;
    size_t n_left;
    size_t n_found;
    struct list hosts, addresses, ports;
};

static const char *find_option(
    const struct dblock_target *target, const char *keyword, const char *variable)
{
    size_t i;

    for (i = 0; i < target->n_values; ++i)
        if (strcmp(target->keywords[i], keyword) == 0)
            return target->values[i];
    return getenv(variable);
}

static size_t count(const char *list)
{
    size_t n = 1;

    for (; *list != 0; ++list)
        n += *list == ',';
    return n;
}

static int begin_list(struct list *list, size_t size)
{
    list->text = calloc(1, size);
    list->size = size;
    return list->text != NULL;
}

static void append(struct list *list, const char *text, size_t length)
{
    int n = snprintf(list->text + list->length, list->size - list->length, "%s%.*s",
        list->is_begun ? "," : "", (int)length, text);

    list->length += (size_t)n;
    list->is_begun = 1;
}

static void add_host(struct search *search, size_t host_length, const char *address)
{
    append(&search->hosts, search->host, host_length);
    append(&search->addresses, address, strlen(address));
    if (search->port != NULL)
        append(&search->ports, search->port, strcspn(search->port, ","));
    ++search->n_found;
}

static const char *next_of(const char *list)
{
    list += strcspn(list, ",");
    return *list == ',' ? list + 1 : list;
}

/* The first host of what is left. One whose name server is silent must leave time for those
 * after it. */
static dblock_status find_next(
    struct search *search, const struct dblock_call *call, struct dblock_error *reterr)
{
    size_t length = strcspn(search->host, ",");
    struct dblock_call share = *call;
    struct dblock_addresses addresses;
    uint64_t now_us = dblock_clock_us();
    char *host = calloc(1, length + 1);
    dblock_status status;
    size_t i;

    if (host == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    memcpy(host, search->host, length);
    if (call->deadline_us > now_us)
        share.deadline_us = now_us + (call->deadline_us - now_us) / search->n_left;
    status = dblock_host_look_up(host, &share, &addresses, reterr);
    free(host);
    if (status != DBLOCK_OK)
        return status;
    for (i = 0; i < addresses.n; ++i)
        add_host(search, length, addresses.texts[i]);
    if (addresses.n == 0)
        add_host(search, length, "");
    return DBLOCK_OK;
}

/* OK if one is found: an address that is not to be had is one host the less. */
static dblock_status find_all(
    struct search *search, const struct dblock_call *call, struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_OK;

    for (; search->n_left > 0; --search->n_left) {
        status = find_next(search, call, reterr);
        if (status != DBLOCK_OK && status != DBLOCK_E_CONNECTION)
            return status;
        search->host = next_of(search->host);
        if (search->port != NULL)
            search->port = next_of(search->port);
    }
    return search->n_found > 0 ? DBLOCK_OK : status;
}

/* One host is left of several, and none of them has a port. To libpq an empty text is none, and
 * then the list that the target has would count. */
static int fill_port(struct list *ports)
{
    PQconninfoOption *options = PQconndefaults();
    const PQconninfoOption *option = options;

    while (option != NULL && option->keyword != NULL && strcmp(option->keyword, "port") != 0)
        ++option;
    if (option != NULL && option->compiled != NULL && strlen(option->compiled) < ports->size)
        append(ports, option->compiled, strlen(option->compiled));
    PQconninfoFree(options);
    return options != NULL;
}

dblock_status pgsql_hosts_find(const struct dblock_target *target, const struct dblock_call *call,
    struct pgsql_hosts *ret_hosts, struct dblock_error *reterr)
{
    const char *host = find_option(target, "host", "PGHOST");
    const char *address = find_option(target, "hostaddr", "PGHOSTADDR");
    const char *service = find_option(target, "service", "PGSERVICE");
    const char *port = find_option(target, "port", "PGPORT");
    struct search search = { .host = host };
    dblock_status status;

    memset(ret_hosts, 0, sizeof *ret_hosts);
    if (host == NULL || *host == 0 || address != NULL || service != NULL)
        return DBLOCK_OK;
    search.n_left = count(host);
    if (port != NULL && strchr(port, ',') != NULL) {
        if (count(port) != search.n_left)
            return DBLOCK_OK; /* libpq says what is wrong */
        search.port = port;
    }
    if (!begin_list(&search.hosts, (strlen(host) + 2) * DBLOCK_ADDRESSES_MAX) ||
        !begin_list(&search.addresses,
            search.n_left * DBLOCK_ADDRESSES_MAX * (DBLOCK_ADDRESS_SIZE + 1) + 1) ||
        (search.port != NULL &&
            !begin_list(&search.ports, (strlen(port) + 2) * DBLOCK_ADDRESSES_MAX)))
        status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    else
        status = find_all(&search, call, reterr);
    search.ports.is_begun = 0;
    if (status == DBLOCK_OK && search.ports.text != NULL && *search.ports.text == 0 &&
        !fill_port(&search.ports))
        status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    ret_hosts->host = search.hosts.text;
    ret_hosts->hostaddr = search.addresses.text;
    ret_hosts->port = search.ports.text;
    return status;
}

void pgsql_hosts_add(
    const struct pgsql_hosts *hosts, const char **keywords, const char **values, size_t n)
{
    if (hosts->host == NULL)
        return;
    keywords[n] = "host";
    values[n++] = hosts->host;
    if (hosts->hostaddr[strspn(hosts->hostaddr, ",")] != 0) {
        keywords[n] = "hostaddr";
        values[n++] = hosts->hostaddr;
    }
    if (hosts->port != NULL) {
        keywords[n] = "port";
        values[n] = hosts->port;
    }
}

void pgsql_hosts_free(struct pgsql_hosts *hosts)
{
    free(hosts->host);
    free(hosts->hostaddr);
    free(hosts->port);
    memset(hosts, 0, sizeof *hosts);
}
