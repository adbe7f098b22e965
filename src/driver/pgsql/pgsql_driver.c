/* SPDX-License-Identifier: MIT */
/* pgsql_driver.c - what dblock can do on PostgreSQL, as a table. */
#include <dblock/pgsql.h>

#include "pgsql_line.h"
#include "pgsql_loan.h"
#include "pgsql_sql.h"
#include "pgsql_steps.h"

static const struct dblock_driver driver = {
    .abi = DBLOCK_DRIVER_ABI,
    .struct_size = sizeof(struct dblock_driver),
    .scheme = "postgresql",
    .schema = pgsql_schema_text,
    .target_open = pgsql_target_open,
    .target_close = pgsql_target_close,
    .install = pgsql_install,
    .connection =
        {
            .open = pgsql_loan_open,
            .close = pgsql_loan_close,
            .is_alive = pgsql_connection_is_alive,
            .fd = pgsql_loan_fd,
            .ping = pgsql_connection_ping,
            .verify = pgsql_connection_verify,
        },
    .session =
        {
            .begin = pgsql_session_begin,
            .renew = pgsql_session_renew,
            .end = pgsql_session_end,
            .holds = pgsql_session_holds,
        },
    .lease =
        {
            .take = pgsql_lease_take,
            .drop = pgsql_lease_drop,
            .extend = pgsql_lease_extend,
            .look = pgsql_lease_look,
            .draw = pgsql_lease_draw,
            .take_many = pgsql_lease_take_many,
            .drop_many = pgsql_lease_drop_many,
        },
    .insert =
        {
            .take = pgsql_insert_take,
            .drop = pgsql_insert_drop,
            .extend = pgsql_insert_extend,
            .look = pgsql_insert_look,
            .draw = pgsql_insert_draw,
            .take_many = pgsql_insert_take_many,
            .drop_many = pgsql_insert_drop_many,
        },
    .line =
        {
            .stand = pgsql_line_stand,
            .rest = pgsql_line_rest,
            .leave = pgsql_line_leave,
        },
    .row =
        {
            .seed = pgsql_row_seed,
            .take = pgsql_row_take,
            .drop = pgsql_row_drop,
            .prove = pgsql_row_prove,
            .draw = pgsql_row_draw,
        },
    .advisory =
        {
            .take = pgsql_advisory_take,
            .drop = pgsql_advisory_drop,
            .prove = pgsql_advisory_prove,
            .draw = pgsql_advisory_draw,
        },
    .observe =
        {
            .list = pgsql_observe_list,
            .end = pgsql_observe_end,
            .end_token = pgsql_token_end,
            .purge = pgsql_observe_purge,
            .check = pgsql_observe_check,
        },
};

const dblock_driver *dblock_pgsql_driver(void)
{
    return &driver;
}
