/* SPDX-License-Identifier: MIT */
/* text.c - prints a text, on the C library alone: what `dblock --help` is compared with. */
#include <stdio.h>

int main(void)
{
    return fputs("usage: minimal\n", stdout) < 0 || fflush(stdout) != 0;
}
