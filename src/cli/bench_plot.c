/* SPDX-License-Identifier: MIT */
/* bench_plot.c - see bench_plot.h. Without libm: every start of the command would load
 * it, for the few logarithms that are in here. */
#include "bench_plot.h"

#include "bench_text.h"

#include <inttypes.h>

/* Points of a curve in each power of ten, and how far it is from one to the next. */
#define POINTS_A_DECADE 24
#define POINT_FACTOR 1.1006941712522096 /* 10 ** (1 / 24) */

/* The logarithm to base ten of what is 1 or more. */
static double decades_of(double number)
{
    double decades = 0;
    double step;

    for (; number >= 10; number /= 10)
        decades += 1;
    /* A square has twice the logarithm: so its bits come one after the other. */
    for (step = 0.5; step > 1e-9; step /= 2) {
        number *= number;
        if (number >= 10) {
            number /= 10;
            decades += step;
        }
    }
    return decades;
}

static double ten_to(int power)
{
    double number = 1;

    for (; power > 0; power--)
        number *= 10;
    return number;
}

static double x_of(const struct plot_scale *scale, double decades)
{
    return decades / scale->right * PLOT_WIDTH;
}

static double y_of(const struct plot_scale *scale, double ns)
{
    double share = (decades_of(ns) - scale->low) / (scale->high - scale->low);

    return (1 - share) * PLOT_HEIGHT;
}

void plot_scale_include(struct plot_scale *scale, const struct latency *latency)
{
    double right = decades_of((double)latency->n);
    double top = decades_of((double)latency->max_ns + 1);
    int low;
    int high;

    if (latency->n == 0)
        return;
    low = (int)decades_of((double)latency_at(latency, 0) + 1);
    high = (int)top < top ? (int)top + 1 : (int)top;
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
        double at = y + y_of(scale, ten_to(power));

        (void)fprintf(stream,
            "<path class=\"grid\" d=\"M%d,%.1fh%d\"/>\n"
            "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f %s</text>\n",
            x, at, PLOT_WIDTH, x - 6, at + 4, ten_to(power - 3 * unit), units[unit]);
    }
}

static void draw_columns(FILE *stream, const struct plot_scale *scale, int x, int y)
{
    int power;

    for (power = 0; power <= (int)scale->right; power++) {
        /* The first is the median; where the axis begins says nothing. */
        double decades = power == 0 ? decades_of(2) : power;
        double at = x + x_of(scale, decades);

        (void)fprintf(stream,
            "<path class=\"grid\" d=\"M%.1f,%dv%d\"/>\n"
            "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.*f %%</text>\n",
            at, y, PLOT_HEIGHT, at, y + PLOT_HEIGHT + 16, power > 2 ? power - 2 : 0,
            100 - (power == 0 ? 50 : 100 / ten_to(power)));
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
    double right = decades_of((double)latency->n);
    double share = 1; /* of the values that are above the point */
    char texts[3][BENCH_TEXT_SIZE];
    int i;

    if (latency->n == 0)
        return;
    (void)fprintf(stream, "<path class=\"curve c%u\" d=\"", style);
    for (i = 0; i < right * POINTS_A_DECADE; i++) {
        double decades = (double)i / POINTS_A_DECADE;
        uint64_t ns = latency_at(latency, 1 - share);

        (void)fprintf(stream, "%s%.1f,%.1f", i == 0 ? "M" : " ", x + x_of(scale, decades),
            y + y_of(scale, (double)ns + 1));
        share /= POINT_FACTOR;
    }
    (void)fprintf(stream,
        "%s%.1f,%.1f\"><title>%s: %" PRIu64 ", p50 %s, p99 %s, max %s</title></path>\n",
        i == 0 ? "M" : " ", x + x_of(scale, right), y + y_of(scale, (double)latency->max_ns + 1),
        name, latency->n, bench_text_duration(latency_at(latency, 0.5), texts[0]),
        bench_text_duration(latency_at(latency, 0.99), texts[1]),
        bench_text_duration(latency->max_ns, texts[2]));
}
