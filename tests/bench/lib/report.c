/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. */
#include "bench/lib/report.h"

#include <stdarg.h>

static const char *tell(struct report *report, int is_missed)
{
    report->n_missed += is_missed;
    return is_missed ? "  MISSED" : "";
}

const char *report_goal(struct report *report, double value, double goal)
{
    return tell(report, goal > 0 && value > goal);
}

const char *report_goal_least(struct report *report, double value, double goal)
{
    return tell(report, goal > 0 && value < goal);
}

int report_begin(struct report *report, const char *path)
{
    if (path == NULL)
        return 0;
    report->json = fopen(path, "w");
    if (report->json == NULL) {
        perror(path);
        return -1;
    }
    (void)fprintf(report->json, "[");
    return 0;
}

void report_json(struct report *report, const char *what, const char *of, ...)
{
    const char *key;
    va_list arguments;

    if (report->json == NULL)
        return;
    (void)fprintf(report->json, "%s\n  {\"what\": \"%s\", \"of\": \"%s\"",
        report->n_written++ > 0 ? "," : "", what, of);
    va_start(arguments, of);
    while ((key = va_arg(arguments, const char *)) != NULL)
        (void)fprintf(report->json, ", \"%s\": %.6g", key, va_arg(arguments, double));
    va_end(arguments);
    (void)fprintf(report->json, "}");
}

void report_end(struct report *report)
{
    if (report->json == NULL)
        return;
    (void)fprintf(report->json, "\n]\n");
    (void)fclose(report->json);
    report->json = NULL;
}
