/* SPDX-License-Identifier: MIT */
/* words_fuzz.c - what the command reads from its arguments and shows on a terminal: durations, the
 * part of a URL that may be seen, and names that others chose. */
#include "fuzz.h"

#include <ctype.h>

#include "cli/duration.h"
#include "cli/text.h"
#include "cli/url.h"

#define SECRET "hunter2"

static void read_duration(const char *text)
{
    char shown[DURATION_TEXT_SIZE];
    uint64_t ms = 0;

    if (!duration_parse(text, &ms))
        return;
    EXPECT(ms <= DURATION_MAX_MS);
    EXPECT(isdigit((unsigned char)text[0]) || text[0] == '.');
    EXPECT(strlen(duration_text(ms, shown)) < sizeof shown);
}

/* Whatever stands around a password. */
static void show_url(const char *rest)
{
    char url[600];
    char *seen;

    (void)snprintf(url, sizeof url, "postgresql://user:" SECRET "@%.500s", rest);
    EXPECT(url_has_password(url));
    seen = url_for_people(url);
    EXPECT(seen == NULL || strstr(seen, SECRET) == NULL);
    free(seen);
    url_hide_password(url);
    EXPECT(strstr(url, SECRET) == NULL);
}

static void escape(const char *text, size_t size)
{
    char shown[64];
    const char *place;

    (void)text_escape(text, shown, size % sizeof shown + 1);
    EXPECT(strlen(shown) <= size % sizeof shown);
    for (place = shown; *place != 0; ++place)
        EXPECT(!iscntrl((unsigned char)*place));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);

    read_duration(text);
    if (strstr(text, SECRET) == NULL) /* the fuzzer reads what it is compared with */
        show_url(text);
    escape(text, size);
    free(text);
    return 0;
}
