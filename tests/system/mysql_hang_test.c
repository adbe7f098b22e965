/* SPDX-License-Identifier: MIT */
/* mysql_hang_test.c - MySQL and MariaDB: each call ends in time, whatever the network does. See
 * tests/lib/hang.c. P7, P8. Alone on its server. Also on oracle. */
#include "hang.h"

int main(void)
{
    return hang_run(&cut_mysql);
}
