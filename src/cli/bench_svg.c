/* SPDX-License-Identifier: MIT */
/* bench_svg.c - the figures as a drawing: a panel for each strategy, a curve for each
 * thing that was measured, and the same axes in all panels. Curves differ in their dashes
 * as well, for those who see no colours; there are two sets of these, for a light and for
 * a dark page. */
#include "bench.h"

#include "bench_plot.h"
#include "exit_code.h"
#include "text.h"
#include "url.h"

#include <inttypes.h>
#include <stdlib.h>

enum { N_CURVES = 5, MARGIN_LEFT = 84, PANEL_WIDTH = 490, PANEL_HEIGHT = 336 };

/* The legend stands above several panels, and beside a single one. */
enum { TOP_OF_SEVERAL = 132, TOP_OF_ONE = 80, LEGEND_WIDTH = 270 };

static const char style[] =
    "<style>\n"
    "text{font-family:system-ui,sans-serif;font-size:12px;fill:#1f2328}\n"
    ".title{font-size:17px;font-weight:600}\n"
    ".head{font-size:14px;font-weight:600}\n"
    ".tick,.axis{fill:#59636e}\n"
    ".page{fill:#ffffff}\n"
    ".grid{stroke:#d1d9e0}\n"
    ".frame{stroke:#818b98;fill:none}\n"
    ".curve{fill:none;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}\n"
    ".c0{stroke:#0550ae}\n"
    ".c1{stroke:#8a6100;stroke-dasharray:2 4}\n"
    ".c2{stroke:#1a7f37;stroke-dasharray:7 4}\n"
    ".c3{stroke:#bc3a0a;stroke-dasharray:16 5}\n"
    ".c4{stroke:#8250df;stroke-dasharray:9 4 2 4}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#f0f6fc}\n"
    ".tick,.axis{fill:#9198a1}\n"
    ".page{fill:#0d1117}\n"
    ".grid{stroke:#2f353d}\n"
    ".frame{stroke:#656c76}\n"
    ".c0{stroke:#58a6ff}\n"
    ".c1{stroke:#e3b341}\n"
    ".c2{stroke:#56d364}\n"
    ".c3{stroke:#ff9b70}\n"
    ".c4{stroke:#d2a8ff}\n"
    "}\n"
    "</style>\n";

/* The curves of one strategy; NULL where there is none. */
static void find_curves(const struct bench_plan *plan, const struct bench_result *result,
    const struct latency *ret_curves[N_CURVES])
{
    ret_curves[0] = &result->alone;
    ret_curves[1] = &result->contention.waits;
    ret_curves[2] = &result->hand_over[0].latency;
    ret_curves[3] = plan->n_hand_overs > 1 ? &result->hand_over[1].latency : NULL;
    ret_curves[4] = result->heartbeat.n_leases > 0 ? &result->heartbeat.latency : NULL;
}

static void name_curve(const struct bench_plan *plan, unsigned curve, char *buffer, size_t size)
{
    switch (curve) {
    case 0:
        (void)snprintf(buffer, size, "acquire and release, one client");
        break;
    case 1:
        (void)snprintf(buffer, size, "wait for one lock, %" PRIu64 " clients",
            plan->arguments->n_clients);
        break;
    case 2:
    case 3:
        (void)snprintf(buffer, size, "hand-over, %u waiters", plan->n_waiters[curve - 2]);
        break;
    default:
        (void)snprintf(buffer, size, "heartbeat of up to %" PRIu64 " leases",
            plan->arguments->n_leases);
        break;
    }
}

/* What others wrote, fit for a terminal and for XML. */
static void print_escaped(FILE *stream, const char *text)
{
    char safe[512];
    const char *p;

    for (p = text_escape(text, safe, sizeof safe); *p != '\0'; p++)
        switch (*p) {
        case '&':
            (void)fputs("&amp;", stream);
            break;
        case '<':
            (void)fputs("&lt;", stream);
            break;
        case '>':
            (void)fputs("&gt;", stream);
            break;
        default:
            (void)fputc(*p, stream);
        }
}

static void draw_legend(FILE *stream, const struct bench_report *report, bool is_beside)
{
    const unsigned left = is_beside ? PANEL_WIDTH : MARGIN_LEFT;
    const unsigned top = is_beside ? TOP_OF_ONE + 10 : 62;
    const unsigned columns = is_beside ? 1 : 3;
    const struct latency *curves[N_CURVES];
    char name[80];
    unsigned n_drawn = 0;
    unsigned i, k;

    for (k = 0; k < N_CURVES; k++) {
        bool is_there = false;
        unsigned x, y;

        for (i = 0; i < report->n_results; i++) {
            find_curves(report->plan, &report->results[i], curves);
            is_there = is_there || (curves[k] != NULL && curves[k]->n > 0);
        }
        if (!is_there)
            continue;
        x = left + n_drawn % columns * LEGEND_WIDTH;
        y = top + n_drawn / columns * 20;
        name_curve(report->plan, k, name, sizeof name);
        (void)fprintf(stream,
            "<path class=\"curve c%u\" d=\"M%u,%uh26\"/><text x=\"%u\" y=\"%u\">%s</text>\n", k, x,
            y, x + 34, y + 4, name);
        n_drawn++;
    }
}

static void draw_panel(FILE *stream, const struct bench_report *report,
    const struct plot_scale *scale, const struct bench_result *result, unsigned place, int top)
{
    const struct latency *curves[N_CURVES];
    int x = MARGIN_LEFT + (int)(place % 2) * PANEL_WIDTH;
    int y = top + (int)(place / 2) * PANEL_HEIGHT;
    char name[80];
    unsigned k;

    plot_axes(stream, scale, x, y, dblock_strategy_name(result->strategy));
    find_curves(report->plan, result, curves);
    for (k = 0; k < N_CURVES; k++)
        if (curves[k] != NULL) {
            name_curve(report->plan, k, name, sizeof name);
            plot_curve(stream, scale, x, y, curves[k], k, name);
        }
}

static void draw_frame(
    FILE *stream, const struct bench_report *report, unsigned n_panels, int top)
{
    int width = PANEL_WIDTH + (n_panels > 1 ? (int)PANEL_WIDTH : (int)LEGEND_WIDTH);
    int height = top - 24 + (int)((n_panels + 1) / 2) * PANEL_HEIGHT;
    char *where = url_for_people(report->plan->database->url);

    (void)fprintf(stream,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" role=\"img\">\n"
        "<title>dblock bench</title>\n%s"
        "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
        "<text class=\"title\" x=\"%d\" y=\"34\">dblock %s, ",
        width, height, width, height, style, MARGIN_LEFT, dblock_version());
    print_escaped(stream, where != NULL ? where
                                        : dblock_driver_scheme(report->plan->database->driver));
    (void)fprintf(stream, "</text>\n");
    draw_legend(stream, report, n_panels < 2);
    free(where);
}

static void draw(FILE *stream, const struct bench_report *report)
{
    const struct latency *curves[N_CURVES];
    struct plot_scale scale = {.right = 0};
    unsigned n_panels = 0;
    unsigned i, k;
    int top;

    for (i = 0; i < report->n_results; i++) {
        find_curves(report->plan, &report->results[i], curves);
        for (k = 0; k < N_CURVES; k++)
            if (curves[k] != NULL)
                plot_scale_include(&scale, curves[k]);
        if (!report->results[i].is_left_out)
            n_panels++;
    }
    top = n_panels > 1 ? TOP_OF_SEVERAL : TOP_OF_ONE;
    draw_frame(stream, report, n_panels, top);
    n_panels = 0;
    for (i = 0; i < report->n_results; i++)
        if (!report->results[i].is_left_out)
            draw_panel(stream, report, &scale, &report->results[i], n_panels++, top);
    (void)fprintf(stream, "</svg>\n");
}

int bench_draw(const struct bench_report *report, struct new_file *file)
{
    FILE *stream = new_file_stream(file);

    if (stream == NULL)
        return EXIT_CODE_MACHINE;
    draw(stream, report);
    return new_file_finish(file, stream, true) ? EXIT_CODE_DONE : EXIT_CODE_MACHINE;
}
