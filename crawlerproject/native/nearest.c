/*
 * Fingerprints near one of them: rules/text_likeness.py has the same in numpy.
 */
#include "page.h"

#include <string.h>

/* A processor of the last fifteen years counts bits in one instruction, which the compiler may not take for granted. */
#if defined(__x86_64__) && defined(__GNUC__)
#define COUNTS_BITS __attribute__((target("popcnt")))
#else
#define COUNTS_BITS
#endif

static inline __attribute__((always_inline)) size_t search(const unsigned char *values, size_t count, uint64_t wanted,
                                                           int bits, size_t from)
{
    for (size_t place = from; place < count; place++) {
        uint64_t value;
        memcpy(&value, values + place * sizeof value, sizeof value);
        if (__builtin_popcountll(value ^ wanted) <= bits)
            return place;
    }
    return count;
}

static COUNTS_BITS size_t search_counting(const unsigned char *values, size_t count, uint64_t wanted, int bits,
                                          size_t from)
{
    return search(values, count, wanted, bits, from);
}

size_t nearest_next(const unsigned char *values, size_t count, uint64_t wanted, int bits, size_t from)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (!__builtin_cpu_supports("popcnt"))
        return search(values, count, wanted, bits, from);
#endif
    return search_counting(values, count, wanted, bits, from);
}

int nearest_bits(const unsigned char *values, size_t place, uint64_t wanted)
{
    uint64_t value;
    memcpy(&value, values + place * sizeof value, sizeof value);
    return __builtin_popcountll(value ^ wanted);
}
