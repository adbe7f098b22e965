/* SPDX-License-Identifier: MIT */
/* application_count.c - see application_count.h. */
#include "application_count.h"

#include <stdio.h>

#include "processes.h"

enum { PROCESSES_MAX = 16, WAIT_MS = 20000, LIMIT_MS = 60000 };

struct task {
    const struct application *application;
    int strategy;
    const char *name;
    int n_times;
};

static int add_one(const struct task *task, dblock_client *client, void *connection)
{
    const struct application *application = task->application;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char sql[100];

    options.strategy = task->strategy;
    options.wait_ms = WAIT_MS;
    if (application->run(connection,
            application->has_one_writer ? application->begin_snapshot : application->begin) != 0)
        return 2;
    if (application->acquire_in(client, connection, task->name, &options, NULL, &error) != DBLOCK_OK)
        return 3;
    (void)snprintf(sql, sizeof sql, "UPDATE account SET balance = %lld WHERE id = 1",
        (long long)application->number(connection, "SELECT balance FROM account WHERE id = 1") + 1);
    return application->run(connection, sql) != 0 || application->run(connection, "COMMIT") != 0 ? 4 : 0;
}

static int count_up(void *context, int ready_fd)
{
    const struct task *task = context;
    const struct contract_database *database = task->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    void *connection = task->application->open();
    int result = 0;
    int i;

    (void)ready_fd;
    if (database->schema != NULL)
        config.schema = database->schema();
    if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, &error) !=
        DBLOCK_OK)
        result = 1;
    for (i = 0; i < task->n_times && result == 0; ++i)
        result = add_one(task, client, connection);
    dblock_close(client);
    task->application->close(connection);
    return result;
}

int application_count(const struct application *application, int strategy, const char *name,
    int n_processes, int n_times)
{
    struct task task = { application, strategy, name, n_times };
    struct test_process processes[PROCESSES_MAX];
    int result = 0;
    int i, n;

    for (n = 0; n < n_processes && n < PROCESSES_MAX && result == 0; ++n)
        result = process_start(&processes[n], count_up, &task);
    for (i = 0; i < n; ++i) {
        int status = process_wait(&processes[i], LIMIT_MS);

        if (result == 0)
            result = status;
    }
    return result;
}
