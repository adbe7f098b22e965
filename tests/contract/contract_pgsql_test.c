/* SPDX-License-Identifier: MIT */
/* contract_pgsql_test.c - the contract suite on one database. What it asks is in
 * the other files of this folder. Time limit: 300 s. Also on pgsql18. */
#include "contract.h"

int main(void)
{
    return contract_run(&contract_pgsql);
}
