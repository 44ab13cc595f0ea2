/*
 * CRC-32 (RFC 1952 8) and SHA-1 (FIPS 180-4) of what lies in memory. By the instructions that x86 has for them: a record
 * takes less than a call of OpenSSL's does. Without those CRC-32 goes eight bytes at a time, and SHA-1 is left to OpenSSL.
 */
#include "page.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define FOLDING __attribute__((target("pclmul,sse4.1")))
#define HASHING __attribute__((target("sha,sse4.1")))

static bool has(unsigned leaf, unsigned bit)
{
    unsigned a, b = 0, c = 0, d;
    if (!__get_cpuid_count(leaf, 0, &a, &b, &c, &d))
        return false;
    return (leaf == 1 ? c : b) >> bit & 1;
}
#endif

enum { SLICES = 8, BYTES = 256 };
static uint32_t slices[SLICES][BYTES];

static void slices_fill(void)
{
    for (uint32_t byte = 0; byte < BYTES; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? 0xedb88320u : 0);
        slices[0][byte] = rest;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int byte = 0; byte < BYTES; byte++)
            slices[slice][byte] = slices[slice - 1][byte] >> 8 ^ slices[0][slices[slice - 1][byte] & 255];
}

static uint32_t crc_sliced(uint32_t crc, const unsigned char *data, size_t size)
{
    for (; size >= SLICES; data += SLICES, size -= SLICES) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = slices[7][crc & 255] ^ slices[6][crc >> 8 & 255] ^ slices[5][crc >> 16 & 255] ^ slices[4][crc >> 24]
              ^ slices[3][data[4]] ^ slices[2][data[5]] ^ slices[1][data[6]] ^ slices[0][data[7]];
    }
    for (; size; size--)
        crc = crc >> 8 ^ slices[0][(crc ^ *data++) & 255];
    return crc;
}

#if defined(__x86_64__)
/* Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009): remainders of
 * powers of x, bits turned round. ``size`` is a multiple of 16 from 64 on. */
FOLDING static __m128i folded(__m128i value, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(value, by, 0x00), high = _mm_clmulepi64_si128(value, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

FOLDING static uint32_t crc_folded(uint32_t crc, const unsigned char *data, size_t size)
{
    const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i last = _mm_set_epi64x(0, 0x0163cd6124), divisor = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low_words = _mm_set_epi32(0, -1, 0, -1), *from = (const __m128i *)(const void *)data;
    __m128i parts[4];
    for (int part = 0; part < 4; part++)
        parts[part] = _mm_loadu_si128(from++);
    parts[0] = _mm_xor_si128(parts[0], _mm_cvtsi32_si128((int)crc));
    for (size -= 64; size >= 64; size -= 64)
        for (int part = 0; part < 4; part++)
            parts[part] = folded(parts[part], by_four, _mm_loadu_si128(from++));
    __m128i whole = parts[0];
    for (int part = 1; part < 4; part++)
        whole = folded(whole, by_one, parts[part]);
    for (; size; size -= 16)
        whole = folded(whole, by_one, _mm_loadu_si128(from++));
    whole = _mm_xor_si128(_mm_srli_si128(whole, 8), _mm_clmulepi64_si128(whole, by_one, 0x10));
    __m128i upper = _mm_srli_si128(whole, 4);
    whole = _mm_xor_si128(upper, _mm_clmulepi64_si128(_mm_and_si128(whole, low_words), last, 0x00));
    upper = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(whole, low_words), divisor, 0x10), low_words);
    whole = _mm_xor_si128(whole, _mm_clmulepi64_si128(upper, divisor, 0x00));
    return (uint32_t)_mm_extract_epi32(whole, 1);
}

/* So many blocks of one text or of two, side by side: of one each instruction waits for the one before. */
HASHING static inline __attribute__((always_inline)) void sha1_by_instructions(uint32_t states[][5], const unsigned char **data,
                                                                              size_t blocks, const int texts)
{
#define EACH for (int text = 0; text < texts; text++)
    const __m128i turned = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    __m128i four[2], fifth[2];
    EACH {
        four[text] = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)states[text]), 0x1b);
        fifth[text] = _mm_set_epi32((int)states[text][4], 0, 0, 0);
    }
    for (; blocks; blocks--) {
        __m128i words[2][4], before[2], four_given[2], fifth_given[2], now[2];
        EACH {
            for (int place = 0; place < 4; place++)
                words[text][place] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)data[text] + place), turned);
            before[text] = four_given[text] = four[text];
            fifth_given[text] = fifth[text];
            data[text] += 64;
        }
#define SCHEDULED(step) \
    EACH words[text][(step)&3] = _mm_sha1msg2_epu32( \
        _mm_xor_si128(_mm_sha1msg1_epu32(words[text][(step)&3], words[text][((step) + 1) & 3]), \
                      words[text][((step) + 2) & 3]), \
        words[text][((step) + 3) & 3]);
#define ROUNDS(step) \
    EACH { \
        now[text] = (step) ? _mm_sha1nexte_epu32(before[text], words[text][(step)&3]) : _mm_add_epi32(fifth[text], words[text][0]); \
        before[text] = four[text]; \
        four[text] = _mm_sha1rnds4_epu32(four[text], now[text], (step) / 5); \
    }
#define LATER(step) SCHEDULED(step) ROUNDS(step)
        ROUNDS(0) ROUNDS(1) ROUNDS(2) ROUNDS(3) LATER(4) LATER(5) LATER(6) LATER(7) LATER(8) LATER(9)
        LATER(10) LATER(11) LATER(12) LATER(13) LATER(14) LATER(15) LATER(16) LATER(17) LATER(18) LATER(19)
        EACH {
            fifth[text] = _mm_sha1nexte_epu32(before[text], fifth_given[text]);
            four[text] = _mm_add_epi32(four[text], four_given[text]);
        }
    }
    EACH {
        _mm_storeu_si128((__m128i *)(void *)states[text], _mm_shuffle_epi32(four[text], 0x1b));
        states[text][4] = (uint32_t)_mm_extract_epi32(fifth[text], 3);
    }
}

HASHING static void sha1_of_one(uint32_t *state, const unsigned char *data, size_t blocks)
{
    sha1_by_instructions((uint32_t(*)[5])(void *)state, &data, blocks, 1);
}

HASHING static void sha1_of_two(uint32_t states[2][5], const unsigned char *data[2], size_t blocks)
{
    sha1_by_instructions(states, data, blocks, 2);
}
#endif

uint32_t checksum_crc32(const unsigned char *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    if (!slices[0][1])
        slices_fill();
#if defined(__x86_64__)
    static int folds = -1;
    if (folds < 0)
        folds = has(1, 1) && has(1, 19); /* PCLMULQDQ, SSE4.1 */
    if (folds && size >= 64) {
        crc = crc_folded(crc, data, size & ~(size_t)15);
        data += size & ~(size_t)15;
        size &= 15;
    }
#endif
    return ~crc_sliced(crc, data, size);
}

bool checksum_sha1(const struct page_span *texts, size_t count, unsigned char digests[][20])
{
#if defined(__x86_64__)
    static int hashes = -1;
    if (hashes < 0)
        hashes = has(7, 29) && has(1, 19); /* SHA, SSE4.1 */
    if (!hashes)
        return false;
    static const uint32_t first[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint32_t states[2][5];
    const unsigned char *data[2];
    size_t together = 0;
    for (size_t text = 0; text < count; text++) {
        memcpy(states[text], first, sizeof first);
        data[text] = texts[text].data;
    }
    if (count == 2) {
        together = (texts[0].size < texts[1].size ? texts[0].size : texts[1].size) / 64;
        sha1_of_two(states, data, together);
    }
    for (size_t text = 0; text < count; text++) {
        size_t size = texts[text].size, left = size % 64, end = left < 56 ? 64 : 128;
        unsigned char rest[128] = {0};
        sha1_of_one(states[text], data[text], size / 64 - together);
        if (left)
            memcpy(rest, texts[text].data + size - left, left);
        rest[left] = 0x80;
        for (int byte = 0; byte < 8; byte++)
            rest[end - 1 - (size_t)byte] = (unsigned char)((uint64_t)size * 8 >> 8 * byte);
        sha1_of_one(states[text], rest, end / 64);
        for (int byte = 0; byte < 20; byte++)
            digests[text][byte] = (unsigned char)(states[text][byte / 4] >> (24 - byte % 4 * 8));
    }
    return true;
#else
    (void)texts, (void)count, (void)digests;
    return false;
#endif
}
