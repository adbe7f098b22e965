/* SPDX-License-Identifier: MIT */
/* mysql_alone_test.c - the cases of the contract suite that change a setting which this server
 * has once for all its users. Alone on its server. Also on oracle. */
#include "contract.h"

int main(void)
{
    return contract_run_alone(&contract_mysql);
}
