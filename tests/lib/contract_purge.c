/* SPDX-License-Identifier: MIT */
/* contract_purge.c - the purge of a driver, for tests that do not wait for a keeper's. */
#include "contract_database.h"

#include <dblock/sys/driver.h>
#include <string.h>
#include <unistd.h>

dblock_status contract_purge(
    const struct contract_database *database, struct dblock_error *reterr)
{
    const dblock_driver *driver = database->driver();
    struct dblock_target_config config = { .url = database->url(CONTRACT_URL),
        .schema = database->schema != NULL ? database->schema() : NULL,
        .host = "purger",
        .pid = getpid(),
        .label = "",
        .connect_timeout_us = 4000000,
        .io_timeout_us = 4000000,
        .ttl_us = 10000000 };
    struct dblock_call call = { dblock_clock_us() + 20000000, -1 };
    struct dblock_answer answer;
    struct dblock_target *target = NULL;
    struct dblock_connection *connection = NULL;
    dblock_status status = driver->target_open(&config, &target, reterr);

    memset(&answer, 0, sizeof answer);
    if (status == DBLOCK_OK)
        status = driver->connection.open(
            target, DBLOCK_ROLE_KEEPER, &call, &connection, &answer, reterr);
    do {
        memset(&answer, 0, sizeof answer);
        if (status == DBLOCK_OK)
            status = driver->observe.purge(connection, &call, &answer, reterr);
    } while (status == DBLOCK_OK && answer.n_rows > 0);
    driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    driver->target_close(target);
    return status;
}
