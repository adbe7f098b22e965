/* SPDX-License-Identifier: MIT */
/* mysql_driver.c - what this driver can do, as the table of include/dblock/sys/driver.h.
 * Nothing happens here; each step is in the file of its group. */
#include <dblock/mysql.h>
#include <dblock/sys/driver.h>

#include "mysql_connection.h"
#include "mysql_install.h"
#include "mysql_lent.h"
#include "mysql_line.h"
#include "mysql_row.h"
#include "mysql_session.h"
#include "mysql_sql.h"
#include "mysql_target.h"

static const struct dblock_driver driver = {
    .abi = DBLOCK_DRIVER_ABI,
    .struct_size = sizeof(struct dblock_driver),
    .scheme = "mysql",
    .schema = mysql_schema_text,
    .target_open = mysql_target_open,
    .target_close = mysql_target_close,
    .install = mysql_install,
    .connection = {
        .open = mysql_lent_open,
        .close = mysql_lent_close,
        .is_alive = mysql_connection_is_alive,
        .fd = mysql_lent_fd,
        .ping = mysql_lent_ping,
        .verify = mysql_lent_verify,
    },
    .session = {
        .begin = mysql_lent_session_begin,
        .renew = mysql_session_renew,
        .end = mysql_lent_session_end,
        .holds = mysql_session_holds,
    },
    .lease = {
        .take = mysql_lent_lease_take,
        .drop = mysql_lent_lease_drop,
        .extend = mysql_lent_lease_extend,
        .look = mysql_lent_lease_look,
        .draw = mysql_lent_lease_draw,
        .take_many = mysql_lent_lease_take_many,
        .drop_many = mysql_lent_lease_drop_many,
    },
    .insert = {
        .take = mysql_lent_insert_take,
        .drop = mysql_lent_insert_drop,
        .extend = mysql_lent_insert_extend,
        .look = mysql_lent_insert_look,
        .draw = mysql_lent_insert_draw,
        .take_many = mysql_lent_insert_take_many,
        .drop_many = mysql_lent_insert_drop_many,
    },
    .line = {
        .stand = mysql_line_stand,
        .rest = mysql_line_rest,
        .leave = mysql_line_leave,
        .drops_where_taken = 1,
    },
    .row = {
        .seed = mysql_row_seed,
        .take = mysql_row_take,
        .drop = mysql_row_drop,
        .prove = mysql_row_prove,
        .draw = mysql_row_draw,
    },
    .advisory = {
        .seed = NULL,
        .take = mysql_lent_advisory_take,
        .drop = mysql_lent_advisory_drop,
        .prove = mysql_lent_advisory_prove,
        .draw = mysql_lent_advisory_draw,
    },
    .observe = {
        .list = mysql_lent_list,
        .end = mysql_lent_break,
        .end_token = mysql_lent_end_token,
        .purge = mysql_lent_purge,
        .check = mysql_lent_check,
    },
};

const struct dblock_driver *dblock_mysql_driver(void)
{
    return &driver;
}
