/* SPDX-License-Identifier: MIT */
/* acquisition.c - see acquisition.h. */
#include "acquisition.h"

#include "grant_list.h"
#include "signals.h"

#include <string.h>

void acquisition_make(const struct arguments *arguments, bool is_heartbeat,
    struct database *ret_database, dblock_lock **ret_lock, struct acquisition *ret_acquisition)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct signal_notice notice;
    struct take take;

    memset(ret_acquisition, 0, sizeof *ret_acquisition);
    *ret_lock = NULL;
    take_configure(arguments, &config);
    ret_acquisition->result = database_open(arguments, &config, ret_database);
    if (ret_acquisition->result != -1)
        return;

    take_init(&take, arguments);
    take.client = ret_database->client;
    take.options.canceller = signals_canceller();
    take.options.heartbeat = is_heartbeat ? DBLOCK_HEARTBEAT_ON : DBLOCK_HEARTBEAT_OFF;
    ret_acquisition->status = take_lock(&take);
    ret_acquisition->holder = take.holder;
    ret_acquisition->error = take.error;
    ret_acquisition->is_held_by_parent = take.is_held_by_parent;
    if (signals_next(&notice) &&
        (ret_acquisition->status == DBLOCK_OK || ret_acquisition->status == DBLOCK_CANCELLED)) {
        ret_acquisition->signal = notice.number;
        ret_acquisition->status = DBLOCK_CANCELLED;
    }
    if (ret_acquisition->status == DBLOCK_OK)
        ret_acquisition->status = dblock_lock_export(take.lock, ret_acquisition->grant,
            sizeof ret_acquisition->grant, &ret_acquisition->error);
    /* What --json shows of the lock; without it the grant is enough. */
    if (ret_acquisition->status == DBLOCK_OK && arguments->is_json)
        grant_of_lock(ret_database->client, take.lock, &ret_acquisition->lock);
    if (ret_acquisition->status != DBLOCK_OK) {
        dblock_lock_free(take.lock); /* releases, if it was got at the last moment */
        take.lock = NULL;
    }
    *ret_lock = take.lock;
}
