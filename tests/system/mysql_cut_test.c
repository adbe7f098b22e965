/* SPDX-License-Identifier: MIT */
/* mysql_cut_test.c - MySQL and MariaDB: what a client answers when its connection ends at any
 * message. The cases are in tests/lib/cut_*.c. P1, P4, P7, P8.
 * Alone on its server. Also on oracle. */
#include "cut_lanes.h"

int main(void)
{
    return cut_run_lanes(&cut_mysql);
}
