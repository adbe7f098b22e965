/* SPDX-License-Identifier: MIT */
/* status.c - the names and sentences of status.h, in one table. */
#include <dblock/dblock.h>
#include <dblock/sys/driver.h>
#include <dblock/version.h>

static const struct status_entry {
    dblock_status status;
    const char *name;
    const char *text;
} entries[] = {
    { DBLOCK_OK, "DBLOCK_OK", "done" },
    { DBLOCK_BUSY, "DBLOCK_BUSY", "someone else holds the lock" },
    { DBLOCK_LOST, "DBLOCK_LOST", "the lock was lost before its holder released it" },
    { DBLOCK_NOT_HELD, "DBLOCK_NOT_HELD", "the lock is not held" },
    { DBLOCK_CANCELLED, "DBLOCK_CANCELLED", "the wait was cancelled" },
    { DBLOCK_PENDING, "DBLOCK_PENDING", "ends with the transaction that still stands on it" },
    { DBLOCK_STALE_SNAPSHOT, "DBLOCK_STALE_SNAPSHOT",
        "the transaction reads data older than the grant" },
    { DBLOCK_ROLLED_BACK, "DBLOCK_ROLLED_BACK", "the server rolled the transaction back" },
    { DBLOCK_CONFLICT, "DBLOCK_CONFLICT", "the lock is held under other terms" },
    { DBLOCK_DONE, "DBLOCK_DONE", "it has run already" },
    { DBLOCK_EMPTY, "DBLOCK_EMPTY", "no event is waiting" },
    { DBLOCK_E_ARGUMENT, "DBLOCK_E_ARGUMENT", "the call is wrong" },
    { DBLOCK_E_UNSUPPORTED, "DBLOCK_E_UNSUPPORTED", "not possible here" },
    { DBLOCK_E_CALLBACK, "DBLOCK_E_CALLBACK", "not to be called from this callback" },
    { DBLOCK_E_FORKED, "DBLOCK_E_FORKED", "the client belongs to the parent process" },
    { DBLOCK_E_CLOSED, "DBLOCK_E_CLOSED", "the client has been closed" },
    { DBLOCK_E_CONNECTION, "DBLOCK_E_CONNECTION", "the database cannot be reached" },
    { DBLOCK_E_UNCERTAIN, "DBLOCK_E_UNCERTAIN", "it is not known whether the request took effect" },
    { DBLOCK_E_LOGIN, "DBLOCK_E_LOGIN", "the database refused the login" },
    { DBLOCK_E_SCHEMA, "DBLOCK_E_SCHEMA", "the tables are missing or not of this release" },
    { DBLOCK_E_PERMISSION, "DBLOCK_E_PERMISSION", "a right is missing" },
    { DBLOCK_E_READ_ONLY, "DBLOCK_E_READ_ONLY", "the database cannot be written" },
    { DBLOCK_E_DATABASE, "DBLOCK_E_DATABASE", "the database reported an error" },
    { DBLOCK_E_MEMORY, "DBLOCK_E_MEMORY", "out of memory" },
    { DBLOCK_E_SYSTEM, "DBLOCK_E_SYSTEM", "the operating system refused" },
    { DBLOCK_E_DRIVER, "DBLOCK_E_DRIVER", "the driver is missing or does not fit" },
};

static const struct status_entry *find_entry(dblock_status status)
{
    size_t i;

    for (i = 0; i < sizeof entries / sizeof entries[0]; ++i)
        if (entries[i].status == status)
            return &entries[i];
    return NULL;
}

const char *dblock_status_name(dblock_status status)
{
    const struct status_entry *entry = find_entry(status);

    return entry != NULL ? entry->name : "DBLOCK_UNKNOWN";
}

const char *dblock_status_text(dblock_status status)
{
    const struct status_entry *entry = find_entry(status);

    return entry != NULL ? entry->text : "a result of another version of dblock";
}

static const char *const strategy_names[] = { "default", "lease", "insert", "row", "advisory" };

const char *dblock_strategy_name(int strategy)
{
    return strategy >= DBLOCK_LEASE && strategy <= DBLOCK_ADVISORY ? strategy_names[strategy]
                                                                    : "unknown";
}

int dblock_strategy_from_name(const char *name)
{
    int strategy;

    if (name != NULL)
        for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy)
            if (strcmp(strategy_names[strategy], name) == 0)
                return strategy;
    return -1;
}

const char *dblock_driver_scheme(const dblock_driver *driver)
{
    return driver != NULL ? driver->scheme : "";
}

const char *dblock_schema(const dblock_driver *driver)
{
    return driver != NULL ? driver->schema : "";
}

const char *dblock_version(void)
{
    return DBLOCK_VERSION_TEXT;
}
