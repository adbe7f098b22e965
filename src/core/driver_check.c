/* SPDX-License-Identifier: MIT */
/* driver_check.c - a driver of another release is refused at the door, and so is
 * one with a hole in its table, instead of a crash in the middle of a lock. */
#include "core/driver_check.h"

static const char *find_hole(const struct dblock_driver *driver)
{
    const struct dblock_driver_connection *connection = &driver->connection;
    const struct dblock_driver_session *session = &driver->session;
    const struct dblock_driver_hold *holds[2] = { &driver->lease, &driver->insert };
    const struct dblock_driver_session_lock *locks[2] = { &driver->row, &driver->advisory };
    int i;

    if (driver->scheme == NULL || driver->schema == NULL)
        return "scheme or schema";
    if (driver->target_open == NULL || driver->target_close == NULL || driver->install == NULL)
        return "target";
    if (connection->open == NULL || connection->close == NULL || connection->is_alive == NULL ||
        connection->fd == NULL || connection->ping == NULL || connection->verify == NULL)
        return "connection";
    if (session->begin == NULL || session->renew == NULL || session->end == NULL ||
        session->holds == NULL)
        return "session";
    for (i = 0; i < 2; ++i)
        if (holds[i]->take == NULL || holds[i]->drop == NULL || holds[i]->extend == NULL ||
            holds[i]->look == NULL)
            return i == 0 ? "lease" : "insert";
    for (i = 0; i < 2; ++i)
        if ((i == 0 && locks[i]->seed == NULL) || locks[i]->take == NULL ||
            locks[i]->drop == NULL || locks[i]->prove == NULL || locks[i]->draw == NULL)
            return i == 0 ? "row" : "advisory";
    if (driver->observe.list == NULL || driver->observe.end == NULL ||
        driver->observe.purge == NULL)
        return "observe";
    return NULL;
}

dblock_status dblk_driver_check(const dblock_driver *driver, struct dblock_error *reterr)
{
    const char *hole;

    if (driver == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "driver: NULL");
    if (driver->abi != DBLOCK_DRIVER_ABI || driver->struct_size != sizeof *driver)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "install libdblock and its drivers from one release",
            "the driver has interface %u, and libdblock %s wants %d", (unsigned)driver->abi,
            dblock_version(), DBLOCK_DRIVER_ABI);
    hole = find_hole(driver);
    if (hole != NULL)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER, NULL,
            "the %s driver has no %s steps", driver->scheme != NULL ? driver->scheme : "?", hole);
    return DBLOCK_OK;
}
