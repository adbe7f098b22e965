/* SPDX-License-Identifier: MIT */
/* report.c - what is said of a result: whether it reaches its goal, and the same
 * numbers for machines. */
#include "pairs.h"

#include <stdarg.h>

const char *report_goal(struct settings *settings, double value, double goal)
{
    if (goal <= 0 || value <= goal)
        return "";
    ++settings->n_missed;
    return "  MISSED";
}

void report_begin(const struct settings *settings)
{
    if (settings->json != NULL)
        (void)fprintf(settings->json, "[");
}

void report_json(struct settings *settings, const char *what, const char *of, ...)
{
    const char *key;
    va_list arguments;

    if (settings->json == NULL)
        return;
    (void)fprintf(settings->json, "%s\n  {\"what\": \"%s\", \"of\": \"%s\"",
        settings->n_written++ > 0 ? "," : "", what, of);
    va_start(arguments, of);
    while ((key = va_arg(arguments, const char *)) != NULL)
        (void)fprintf(settings->json, ", \"%s\": %.6g", key, va_arg(arguments, double));
    va_end(arguments);
    (void)fprintf(settings->json, "}");
}

void report_end(const struct settings *settings)
{
    if (settings->json != NULL)
        (void)fprintf(settings->json, "\n]\n");
}
