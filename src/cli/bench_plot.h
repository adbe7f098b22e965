/* SPDX-License-Identifier: MIT */
/* bench_plot.h - one panel of a drawing: axes, and curves of durations over their
 * percentiles. Both axes are logarithmic: up, the duration; to the right, what is left
 * above the percentile, so that 99 % and 99.9 % are as far apart as 90 % and 99 %. */
#ifndef CLI_BENCH_PLOT_H
#define CLI_BENCH_PLOT_H

#include "latency.h"

#include <stdio.h>

enum { PLOT_WIDTH = 380, PLOT_HEIGHT = 250 };

/* What all panels of a drawing share. All zero holds nothing yet. */
struct plot_scale {
    double right;  /* powers of ten left above the percentile */
    int low, high; /* powers of ten, in ns; the same: nothing is there */
};

void plot_scale_include(struct plot_scale *scale, const struct latency *latency);

/* Frame, grid and labels, the left upper corner at x, y. */
void plot_axes(FILE *stream, const struct plot_scale *scale, int x, int y, const char *title);

/* `style`: the number of its class, c0, c1, ...; `name` tells which it is, where the mouse stays on
 * it. Nothing if there are no durations. */
void plot_curve(FILE *stream, const struct plot_scale *scale, int x, int y,
    const struct latency *latency, unsigned style, const char *name);

#endif
