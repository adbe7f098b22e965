/* SPDX-License-Identifier: MIT */
/* contract_mysql_test.c - the contract suite on one database. What it asks is in
 * the other files of this folder. Time limit: 300 s. Also on oracle. */
#include "contract.h"

int main(void)
{
    return contract_run(&contract_mysql);
}
