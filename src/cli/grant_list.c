/* SPDX-License-Identifier: MIT */
/* grant_list.c - see grant_list.h. */
#include "grant_list.h"

#include "exit_code.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

int grant_list_add(const struct dblock_grant *grant, void *context)
{
    struct grant_list *list = context;

    if (list->host != NULL && strcmp(list->host, grant->host) != 0)
        return 0;
    if (list->limit != 0 && list->n_grants == list->limit) {
        list->is_cut = true;
        return 1;
    }
    if (list->n_grants == list->n_room) {
        size_t n_room = list->n_room == 0 ? 8 : 2 * list->n_room;
        struct dblock_grant *grants = realloc(list->grants, n_room * sizeof *grants);

        if (grants == NULL) {
            list->is_out_of_memory = true;
            return 1;
        }
        list->grants = grants;
        list->n_room = n_room;
    }
    list->grants[list->n_grants++] = *grant;
    return 0;
}

int grant_list_read(
    struct grant_list *list, dblock_client *client, const struct dblock_filter *filter)
{
    struct dblock_error error;
    dblock_status status = dblock_list(client, filter, grant_list_add, list, &error);

    if (status < 0) {
        message_error(&error, NULL);
        return exit_code_of(status);
    }
    if (list->is_out_of_memory) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

int grant_list_read_holders(
    struct grant_list *list, dblock_client *client, const char *name, int strategy)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;

    filter.name = name;
    filter.strategy = strategy;
    return grant_list_read(list, client, &filter);
}

void grant_list_clear(struct grant_list *list)
{
    free(list->grants);
    memset(list, 0, sizeof *list);
}
