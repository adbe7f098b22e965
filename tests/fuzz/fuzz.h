/* SPDX-License-Identifier: MIT */
/* fuzz.h - what every fuzzer needs. A fuzzer is a file x_fuzz.c: bytes from somebody hostile go in;
 * what must hold is asserted, and the sanitizers watch the rest. */
#ifndef DBLOCK_TEST_FUZZ_H
#define DBLOCK_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As assert(), and in every flavour. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The rest of an input as a string, ended by its first zero byte at the latest; malloced. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);

    EXPECT(text != NULL);
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

/* One text behind another; malloced. */
static inline char *fuzz_join(const char *first, size_t length, const char *second)
{
    size_t size = strlen(second) + 1;
    char *text = malloc(length + size);

    EXPECT(text != NULL);
    memcpy(text, first, length);
    memcpy(text + length, second, size);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
