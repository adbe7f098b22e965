/* SPDX-License-Identifier: MIT */
/* pgsql_notice_test.c - PostgreSQL: holder and server both notice that the network is silent. See
 * tests/lib/notice.c. P6, P9. Alone on its server. Also on pgsql18. */
#include "notice.h"

int main(void)
{
    return notice_run(&cut_pgsql, 0);
}
