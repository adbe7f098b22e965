/* SPDX-License-Identifier: MIT */
/* memory.c - does the process grow over very many pairs of one client? */
#include "pairs.h"

#include <unistd.h>

enum { WARM_UP = 20000, ALLOWED_KB = 512 };

static double resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static int run_pairs(struct library *library, long n)
{
    long i;

    for (i = 0; i < n; ++i)
        if (library_pair(library) != 0)
            return -1;
    return 0;
}

int memory_run(const struct database *database, const char *url, struct settings *settings)
{
    /* on a server the fastest strategy, as the client's code is mostly the same */
    int strategy = database->variable == NULL ? DBLOCK_LEASE : DBLOCK_ADVISORY;
    struct library *library = library_open(database, url, strategy, 0);
    double before_kb, growth_kb;
    int result = -1;

    if (library == NULL)
        return -1;
    if (run_pairs(library, WARM_UP) == 0) {
        before_kb = resident_kb();
        if (run_pairs(library, settings->n_memory_pairs) == 0) {
            growth_kb = resident_kb() - before_kb;
            (void)printf("%-11s %-9s %ld pairs: %.0f KiB resident before, %+.0f KiB after%s\n",
                database->name, dblock_strategy_name(strategy), settings->n_memory_pairs,
                before_kb, growth_kb, report_goal(&settings->report, growth_kb, ALLOWED_KB));
            report_json(&settings->report, database->name, "memory", "pairs",
                (double)settings->n_memory_pairs, "before_kb", before_kb, "growth_kb", growth_kb,
                NULL);
            result = 0;
        }
    }
    library_close(library);
    return result;
}
