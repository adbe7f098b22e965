/* SPDX-License-Identifier: MIT */
/* bench_plot.c - see bench_plot.h. */
#include "bench_plot.h"

#include "bench_text.h"

#include <inttypes.h>
#include <math.h>

/* Points of a curve in each power of ten. */
#define POINTS_A_DECADE 24

static double x_of(const struct plot_scale *scale, double decades)
{
    return decades / scale->right * PLOT_WIDTH;
}

static double y_of(const struct plot_scale *scale, double ns)
{
    double share = (log10(ns) - scale->low) / (scale->high - scale->low);

    return (1 - share) * PLOT_HEIGHT;
}

void plot_scale_include(struct plot_scale *scale, const struct latency *latency)
{
    double right = log10((double)latency->n);
    int low;
    int high;

    if (latency->n == 0)
        return;
    low = (int)floor(log10((double)latency_at(latency, 0) + 1));
    high = (int)ceil(log10((double)latency->max_ns + 1));
    if (scale->low == scale->high) {
        scale->low = low;
        scale->high = high;
    }
    scale->low = low < scale->low ? low : scale->low;
    scale->high = high > scale->high ? high : scale->high;
    if (scale->high == scale->low)
        scale->high++;
    /* Never so narrow that 99 % has no place. */
    if (scale->right < 2)
        scale->right = 2;
    if (right > scale->right)
        scale->right = right;
}

static void draw_rows(FILE *stream, const struct plot_scale *scale, int x, int y)
{
    static const char *const units[] = {"ns", "&#181;s", "ms", "s"};
    int power;

    for (power = scale->low; power <= scale->high; power++) {
        int unit = power / 3 < 3 ? power / 3 : 3;
        double at = y + y_of(scale, pow(10, power));

        (void)fprintf(stream,
            "<path class=\"grid\" d=\"M%d,%.1fh%d\"/>\n"
            "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f %s</text>\n",
            x, at, PLOT_WIDTH, x - 6, at + 4, pow(10, power - 3 * unit), units[unit]);
    }
}

static void draw_columns(FILE *stream, const struct plot_scale *scale, int x, int y)
{
    int power;

    for (power = 0; power <= (int)scale->right; power++) {
        /* The first is the median; where the axis begins says nothing. */
        double decades = power == 0 ? log10(2) : power;
        double at = x + x_of(scale, decades);

        (void)fprintf(stream,
            "<path class=\"grid\" d=\"M%.1f,%dv%d\"/>\n"
            "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.*f %%</text>\n",
            at, y, PLOT_HEIGHT, at, y + PLOT_HEIGHT + 16, power > 2 ? power - 2 : 0,
            100 - pow(10, 2 - decades));
    }
}

void plot_axes(FILE *stream, const struct plot_scale *scale, int x, int y, const char *title)
{
    int middle = y + PLOT_HEIGHT / 2;

    (void)fprintf(stream, "<text class=\"head\" x=\"%d\" y=\"%d\">%s</text>\n", x, y - 8, title);
    if (scale->low < scale->high) {
        draw_rows(stream, scale, x, y);
        draw_columns(stream, scale, x, y);
    }
    (void)fprintf(stream,
        "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n"
        "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">"
        "percentile (log scale)</text>\n"
        "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" "
        "transform=\"rotate(-90 %d %d)\">latency (log scale)</text>\n",
        x, y, PLOT_WIDTH, PLOT_HEIGHT, x + PLOT_WIDTH / 2, y + PLOT_HEIGHT + 34, x - 56, middle,
        x - 56, middle);
}

void plot_curve(FILE *stream, const struct plot_scale *scale, int x, int y,
    const struct latency *latency, unsigned style, const char *name)
{
    double right = log10((double)latency->n);
    char texts[3][BENCH_TEXT_SIZE];
    int i;

    if (latency->n == 0)
        return;
    (void)fprintf(stream, "<path class=\"curve c%u\" d=\"", style);
    for (i = 0; i < right * POINTS_A_DECADE; i++) {
        double decades = (double)i / POINTS_A_DECADE;
        uint64_t ns = latency_at(latency, 1 - pow(10, -decades));

        (void)fprintf(stream, "%s%.1f,%.1f", i == 0 ? "M" : " ", x + x_of(scale, decades),
            y + y_of(scale, (double)ns + 1));
    }
    (void)fprintf(stream,
        "%s%.1f,%.1f\"><title>%s: %" PRIu64 ", p50 %s, p99 %s, max %s</title></path>\n",
        i == 0 ? "M" : " ", x + x_of(scale, right), y + y_of(scale, (double)latency->max_ns + 1),
        name, latency->n, bench_text_duration(latency_at(latency, 0.5), texts[0]),
        bench_text_duration(latency_at(latency, 0.99), texts[1]),
        bench_text_duration(latency->max_ns, texts[2]));
}
