/* SPDX-License-Identifier: MIT */
/* simulate.c - plays seeds from the command line: one to look at, or many for as
 * long as one likes.
 *
 *   simulate [--seed N] [--steps N] [--seeds N] [--seconds N] [--clients N]
 *            [--mistake NAME] [--trace]
 *
 * Without --seed the first one is taken from the clock, and printed. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scene.h"

static uint64_t now_ms(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static int usage(void)
{
    int i;

    fputs("usage: simulate [--seed N] [--steps N] [--seeds N] [--seconds N] [--clients N]\n"
          "                [--mistake NAME] [--trace]\nmistakes:", stderr);
    for (i = 1; i < SCENE_MISTAKES; ++i)
        fprintf(stderr, " %s", scene_mistake_names[i]);
    fputc('\n', stderr);
    return 64;
}

static void report(const struct scene *scene, int n_violations)
{
    const struct scene_counts *counts = &scene->counts;

    printf("grants %llu, answers lost and settled: yes %llu no %llu uncertain %llu, given back "
           "%llu, refused as late %llu, lost %llu, swept %llu, undone by a crash %llu\n",
        (unsigned long long)counts->grants, (unsigned long long)counts->settled_yes,
        (unsigned long long)counts->settled_no, (unsigned long long)counts->uncertain,
        (unsigned long long)counts->given_back, (unsigned long long)counts->late_refused,
        (unsigned long long)counts->lost, (unsigned long long)counts->swept,
        (unsigned long long)counts->restored);
    printf("excused: two believers after a step forward of the clock %llu, after a break %llu, a "
           "no undone by a step back %llu, by a slow commit %llu; slowest end of an "
           "acquire: %.2f I/O limits past its wait\n",
        (unsigned long long)counts->excused_forward, (unsigned long long)counts->excused_broken,
        (unsigned long long)counts->excused_back, (unsigned long long)counts->excused_lag,
        (double)counts->slowest_end_us / 1000);
    printf("%llu steps, %llu seeds, %d violations\n", (unsigned long long)counts->steps,
        (unsigned long long)counts->seeds, n_violations);
}

static int find_mistake(const char *name)
{
    int i;

    for (i = 0; i < SCENE_MISTAKES; ++i)
        if (strcmp(name, scene_mistake_names[i]) == 0)
            return i;
    return -1;
}

int main(int argc, char **argv)
{
    static struct scene scene;
    uint64_t seed = now_ms(), n_steps = 4000, n_seeds = 0, n_seconds = 0, i;
    unsigned n_clients = 0;
    int mistake = 0, is_tracing = 0, has_seed = 0, argument;
    uint64_t begun_ms = now_ms();

    for (argument = 1; argument < argc; ++argument) {
        const char *name = argv[argument];
        const char *value = argument + 1 < argc ? argv[argument + 1] : NULL;

        if (strcmp(name, "--trace") == 0) {
            is_tracing = 1;
            continue;
        }
        if (value == NULL)
            return usage();
        ++argument;
        if (strcmp(name, "--seed") == 0) {
            seed = strtoull(value, NULL, 10);
            has_seed = 1;
        } else if (strcmp(name, "--steps") == 0)
            n_steps = strtoull(value, NULL, 10);
        else if (strcmp(name, "--seeds") == 0)
            n_seeds = strtoull(value, NULL, 10);
        else if (strcmp(name, "--seconds") == 0)
            n_seconds = strtoull(value, NULL, 10);
        else if (strcmp(name, "--clients") == 0)
            n_clients = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(name, "--with") == 0)
            scene.with = (unsigned)strtoul(value, NULL, 0);
        else if (strcmp(name, "--without") == 0)
            scene.without = (unsigned)strtoul(value, NULL, 0);
        else if (strcmp(name, "--mistake") == 0)
            mistake = find_mistake(value);
        else
            return usage();
    }
    if (mistake < 0 || n_clients > SCENE_CLIENTS_MAX)
        return usage();
    if (n_seeds == 0)
        n_seeds = n_seconds != 0 ? UINT64_MAX : has_seed ? 1 : 250;
    printf("first seed %llu\n", (unsigned long long)seed);
    for (i = 0; i < n_seeds; ++i) {
        if (n_seconds != 0 && now_ms() - begun_ms >= n_seconds * 1000)
            break;
        if (scene_play(&scene, seed + i, n_steps, n_clients, (enum scene_mistake)mistake,
                is_tracing) == 0)
            continue;
        scene_print_notes(&scene);
        printf("seed %llu, step %llu: %s\n", (unsigned long long)scene.seed,
            (unsigned long long)scene.counts.steps, scene.violation);
        printf("again: simulate --seed %llu --steps %llu --clients %u --mistake %s\n",
            (unsigned long long)scene.seed, (unsigned long long)n_steps, n_clients,
            scene_mistake_names[mistake]);
        report(&scene, 1);
        return 1;
    }
    report(&scene, 0);
    return 0;
}
