/* SPDX-License-Identifier: MIT */
/* exit_code.c - from a status of the library to an exit status: one table. */
#include "exit_code.h"

#include <stddef.h>

static const struct {
    dblock_status status;
    int exit_code;
} table[] = {
    {DBLOCK_OK, EXIT_CODE_DONE},
    {DBLOCK_PENDING, EXIT_CODE_DONE},
    {DBLOCK_NOT_HELD, EXIT_CODE_NO},
    {DBLOCK_BUSY, EXIT_CODE_BUSY},
    {DBLOCK_LOST, EXIT_CODE_LOST},
    /* Somebody uses the name in another way: waiting does not mend that. */
    {DBLOCK_CONFLICT, EXIT_CODE_CONFIGURATION},
    {DBLOCK_E_ARGUMENT, EXIT_CODE_USAGE},
    {DBLOCK_E_UNSUPPORTED, EXIT_CODE_CONFIGURATION},
    {DBLOCK_E_CONNECTION, EXIT_CODE_DATABASE},
    {DBLOCK_E_DATABASE, EXIT_CODE_DATABASE},
    {DBLOCK_E_UNCERTAIN, EXIT_CODE_UNCERTAIN},
    {DBLOCK_E_LOGIN, EXIT_CODE_REFUSED},
    {DBLOCK_E_PERMISSION, EXIT_CODE_REFUSED},
    {DBLOCK_E_READ_ONLY, EXIT_CODE_REFUSED},
    {DBLOCK_E_SCHEMA, EXIT_CODE_CONFIGURATION},
    {DBLOCK_E_DRIVER, EXIT_CODE_CONFIGURATION},
    {DBLOCK_E_MEMORY, EXIT_CODE_MACHINE},
    {DBLOCK_E_SYSTEM, EXIT_CODE_MACHINE},
};

int exit_code_of(dblock_status status)
{
    size_t i;

    for (i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].status == status)
            return table[i].exit_code;
    /* What this command never asks for, or what a later library answers. */
    return EXIT_CODE_BUG;
}
