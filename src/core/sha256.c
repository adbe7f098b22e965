/* SPDX-License-Identifier: MIT */
/* sha256.c - SHA-256 as FIPS 180-4 defines it, for names of a few hundred bytes. Not for secrets:
 * it has to give the same everywhere, and to make two names with one number practically
 * impossible. */
#include <dblock/sys/driver.h>

#include <string.h>

#define BLOCK_SIZE 64

static const uint32_t round_constants[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
    0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t rotate(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

static void mix_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t schedule[64];
    uint32_t work[8];
    size_t i;

    for (i = 0; i < 16; ++i)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (i = 16; i < 64; ++i) {
        uint32_t early = schedule[i - 15];
        uint32_t late = schedule[i - 2];

        schedule[i] = schedule[i - 16] + schedule[i - 7] +
                      (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
                      (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
    memcpy(work, state, sizeof work);
    for (i = 0; i < 64; ++i) {
        uint32_t first =
            work[7] + (rotate(work[4], 6) ^ rotate(work[4], 11) ^ rotate(work[4], 25)) +
            ((work[4] & work[5]) ^ (~work[4] & work[6])) + round_constants[i] + schedule[i];
        uint32_t second = (rotate(work[0], 2) ^ rotate(work[0], 13) ^ rotate(work[0], 22)) +
                          ((work[0] & work[1]) ^ (work[0] & work[2]) ^ (work[1] & work[2]));

        memmove(work + 1, work, 7 * sizeof work[0]);
        work[4] += first;
        work[0] = first + second;
    }
    for (i = 0; i < 8; ++i)
        state[i] += work[i];
}

void dblock_sha256(const void *data, size_t size, unsigned char digest[DBLOCK_SHA256_SIZE])
{
    uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
        0x1f83d9ab, 0x5be0cd19 };
    unsigned char tail[2 * BLOCK_SIZE] = { 0 };
    uint64_t n_bits = (uint64_t)size * 8;
    size_t done = 0;
    size_t tail_size, i;

    for (; size - done >= BLOCK_SIZE; done += BLOCK_SIZE)
        mix_block(state, (const unsigned char *)data + done);
    if (size > done)
        memcpy(tail, (const unsigned char *)data + done, size - done);
    tail[size - done] = 0x80;
    tail_size = size - done < BLOCK_SIZE - 8 ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    for (i = 0; i < 8; ++i)
        tail[tail_size - 1 - i] = (unsigned char)(n_bits >> (8 * i));
    for (i = 0; i < tail_size; i += BLOCK_SIZE)
        mix_block(state, tail + i);
    for (i = 0; i < DBLOCK_SHA256_SIZE; ++i)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}

int64_t dblock_name_number(const char *name, size_t size)
{
    unsigned char digest[DBLOCK_SHA256_SIZE];
    uint64_t number = 0;
    size_t i;

    dblock_sha256(name, size, digest);
    for (i = 0; i < 8; ++i)
        number = number << 8 | digest[i];
    return (int64_t)number;
}
