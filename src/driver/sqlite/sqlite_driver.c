/* SPDX-License-Identifier: MIT */
/* sqlite_driver.c - what dblock can do on SQLite, as a table. */
#include <dblock/sqlite.h>

#include "sqlite_sql.h"
#include "sqlite_steps.h"

static const struct dblock_driver driver = {
    .abi = DBLOCK_DRIVER_ABI,
    .struct_size = sizeof(struct dblock_driver),
    .scheme = "sqlite",
    .schema = sqlite_schema_text,
    .target_open = sqlite_target_open,
    .target_close = sqlite_target_close,
    .install = sqlite_install,
    .connection =
        {
            .open = sqlite_connection_open,
            .close = sqlite_connection_close,
            .is_alive = sqlite_connection_is_alive,
            .fd = sqlite_connection_fd,
            .ping = sqlite_connection_ping,
            .verify = sqlite_connection_verify,
        },
    .session =
        {
            .begin = sqlite_session_begin,
            .renew = sqlite_session_renew,
            .end = sqlite_session_end,
            .holds = sqlite_session_holds,
        },
    .lease =
        {
            .take = sqlite_lease_take,
            .drop = sqlite_lease_drop,
            .extend = sqlite_lease_extend,
            .look = sqlite_lease_look,
            .draw = sqlite_lease_draw,
            .take_many = sqlite_lease_take_many,
            .drop_many = sqlite_lease_drop_many,
        },
    .insert =
        {
            .take = sqlite_insert_take,
            .drop = sqlite_insert_drop,
            .extend = sqlite_insert_extend,
            .look = sqlite_insert_look,
            .draw = sqlite_insert_draw,
            .take_many = sqlite_insert_take_many,
            .drop_many = sqlite_insert_drop_many,
        },
    .line =
        {
            .stand = sqlite_stand,
            .rest = sqlite_rest,
            .leave = sqlite_leave,
        },
    .row =
        {
            .seed = sqlite_row_seed,
            .take = sqlite_row_take,
            .drop = sqlite_row_drop,
            .prove = sqlite_row_prove,
            .draw = sqlite_row_draw,
        },
    .advisory =
        {
            .take = sqlite_advisory_take,
            .drop = sqlite_advisory_drop,
            .prove = sqlite_advisory_prove,
            .draw = sqlite_advisory_draw,
        },
    .observe =
        {
            .list = sqlite_observe_list,
            .end = sqlite_observe_end,
            .purge = sqlite_observe_purge,
            .check = sqlite_observe_check,
        },
};

const dblock_driver *dblock_sqlite_driver(void)
{
    return &driver;
}
