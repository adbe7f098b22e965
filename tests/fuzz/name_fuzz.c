/* SPDX-License-Identifier: MIT */
/* name_fuzz.c - exactly the well-formed names are taken. What is well-formed, the decoder of the
 * C library says as well. */
#include "fuzz.h"

#include <locale.h>
#include <wchar.h>

#include "core/name.h"

static int is_well_formed(const char *text, size_t length)
{
    mbstate_t state;

    memset(&state, 0, sizeof state);
    while (length > 0) {
        wchar_t character;
        size_t size = mbrtowc(&character, text, length, &state);

        if (size == 0 || size > length || character > 0x10FFFF) /* which glibc lets pass */
            return 0;
        text += size;
        length -= size;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *name = fuzz_text(bytes, size);
    size_t length = strlen(name);
    struct dblock_error error;
    dblock_status status;
    int is_good;

    EXPECT(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    is_good = length > 0 && length <= DBLOCK_NAME_MAX && is_well_formed(name, length);
    memset(&error, 0xA5, sizeof error);
    status = dblk_name_check(name, &error);
    EXPECT(status == (is_good ? DBLOCK_OK : DBLOCK_E_ARGUMENT));
    EXPECT(is_good || (error.status == status && error.message[0] != 0 &&
        is_well_formed(error.message, strlen(error.message))));
    free(name);
    return 0;
}
