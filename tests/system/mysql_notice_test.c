/* SPDX-License-Identifier: MIT */
/* mysql_notice_test.c - MySQL and MariaDB: holder and server both notice that the network is
 * silent. See tests/lib/notice.c. P6, P9. Alone on its server. Also on oracle. */
#include "notice.h"

int main(void)
{
    return notice_run(&cut_mysql, 1);
}
