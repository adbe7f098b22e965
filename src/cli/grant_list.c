/* SPDX-License-Identifier: MIT */
/* grant_list.c - see grant_list.h. */
#include "grant_list.h"

#include "exit_code.h"
#include "message.h"

#include <stdio.h>
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
    dblock_status status;

    if (client == NULL)
        return -1;
    status = dblock_list(client, filter, grant_list_add, list, &error);
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

void grant_of_lock(dblock_client *client, dblock_lock *lock, struct dblock_grant *ret_grant)
{
    memset(ret_grant, 0, sizeof *ret_grant);
    ret_grant->struct_size = sizeof *ret_grant;
    if (dblock_inspect(client, dblock_lock_name(lock), dblock_lock_strategy(lock), ret_grant,
            NULL) == DBLOCK_OK &&
        strcmp(ret_grant->owner, dblock_lock_owner(lock)) == 0)
        return;
    memset(ret_grant, 0, sizeof *ret_grant);
    ret_grant->strategy = dblock_lock_strategy(lock);
    ret_grant->n_waiters = UINT32_MAX;
    ret_grant->remaining_ms = dblock_lock_remaining_ms(lock);
    if (dblock_lock_token(lock, &ret_grant->token, NULL) != DBLOCK_OK)
        ret_grant->token = 0;
    (void)snprintf(ret_grant->owner, sizeof ret_grant->owner, "%s", dblock_lock_owner(lock));
    (void)snprintf(ret_grant->name, sizeof ret_grant->name, "%s", dblock_lock_name(lock));
}

void grant_list_clear(struct grant_list *list)
{
    free(list->grants);
    memset(list, 0, sizeof *list);
}
