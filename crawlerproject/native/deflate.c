/*
 * A short record as a gzip member (RFC 1951, RFC 1952), in a fraction of the work that a code of its own costs it: requests
 * and metadata are all alike, so that one Huffman code serves them all. It takes 2 % more room than a code for each.
 */
#include "page.h"

#include <string.h>

enum {
    SYMBOLS = 286,
    END = 256,
    LENGTHS = 257, /* the first symbol of a length */
    DISTANCES = 24,
    LEAST_MATCH = 4,
    MOST_MATCH = 258,
    MOST_BITS = 12,
    PLACES_BITS = 10,
    FULL = 27, /* a match takes up to 36 bits more */
};

/* How many bits each symbol takes, as a digit of base 13: of the best code (package-merge) for 12,000 records made up of
 * names, paths and fields like those of crawls. What is not printable ASCII, a tab or a line break has none. */
static const char LETTER_SIZES[] = /* from a blank on */
    "5ccccccc99999566555666666658888cc78778998799999989786887898cccc9c565546766c867656955569888ccccc";
static const char LENGTH_SIZES[] = /* from END on */
    "9068878c9999cccccccccccccccccc";
static const char DISTANCE_SIZES[] = "688688584444433334589999";
enum { TAB_SIZE = 12, BREAK_SIZE = 6 };

/* The begin of a last block with that code (RFC 1951 3.2.7); its last bits share a byte with what follows. */
const unsigned char deflate_head[] = {
    0xed, 0x57, 0x77, 0x5b, 0xdc, 0x30, 0x78, 0xff, 0xbb, 0x7e, 0x1e, 0x7f, 0x07, 0x75, 0x67, 0xc9,
    0x96, 0xe4, 0x2d, 0x46, 0x7b, 0xdc, 0x91, 0x70, 0x99, 0xe4, 0x30, 0x1c, 0xa1, 0x23, 0x95, 0xa5,
    0xd7, 0x67, 0x17, 0x9f, 0xe5, 0x48, 0x72, 0x80, 0xae, 0xcf, 0x9e, 0xc7, 0x70, 0x34, 0xa3, 0x7b,
    0x4f, 0x83, 0x41, 0xbc, 0xeb, 0x37, 0x5e, 0x91, 0x01,
};
static const unsigned char GZIP_HEAD[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}; /* as isal writes it */

struct code {
    uint32_t bits, size; /* the first bit is the lowest */
};
static struct code letters[LENGTHS], lengths[MOST_MATCH + 1], distances[DISTANCES];

struct writer {
    unsigned char *out;
    uint64_t bits;
    unsigned count;
};

static void put(struct writer *to, uint64_t bits, unsigned size)
{
    to->bits |= bits << to->count;
    to->count += size;
}

/* Writes the whole bytes, and zeros behind them. */
static void spill(struct writer *to)
{
    for (unsigned byte = 0; byte < 8; byte++)
        to->out[byte] = (unsigned char)(to->bits >> 8 * byte);
    to->out += to->count / 8;
    to->bits >>= to->count & ~7u;
    to->count &= 7;
}

static void sizes_fill(struct code *codes, const char *sizes)
{
    for (; *sizes; sizes++, codes++)
        codes->size = (uint32_t)(*sizes >= 'a' ? *sizes - 'a' + 10 : *sizes - '0');
}

/* RFC 1951 3.2.2: codes of one size ascend with their symbols. */
static void codes_fill(struct code *codes, size_t count)
{
    uint32_t code = 0;
    for (uint32_t size = 1; size <= MOST_BITS; size++, code <<= 1)
        for (size_t symbol = 0; symbol < count; symbol++) {
            if (codes[symbol].size != size)
                continue;
            for (uint32_t bit = 0; bit < size; bit++)
                codes[symbol].bits |= (code >> bit & 1) << (size - 1 - bit);
            code++;
        }
}

static void tables_fill(void)
{
    struct code all[SYMBOLS] = {['\t'] = {0, TAB_SIZE}, ['\n'] = {0, BREAK_SIZE}, ['\r'] = {0, BREAK_SIZE}};
    sizes_fill(all + ' ', LETTER_SIZES);
    sizes_fill(all + END, LENGTH_SIZES);
    sizes_fill(distances, DISTANCE_SIZES);
    codes_fill(all, SYMBOLS);
    codes_fill(distances, DISTANCES);
    /* RFC 1951 3.2.5: eight symbols of one length, then four each of 2, 4, ... 32 lengths, then that of 258. */
    for (size_t length = 3, symbol = LENGTHS; length < MOST_MATCH; symbol++) {
        unsigned extra = symbol < LENGTHS + 8 ? 0 : (unsigned)(symbol - LENGTHS - 4) / 4;
        for (uint32_t more = 0; more < 1u << extra && length < MOST_MATCH; more++, length++)
            lengths[length] = (struct code){all[symbol].bits | more << all[symbol].size, all[symbol].size + extra};
    }
    lengths[MOST_MATCH] = all[SYMBOLS - 1];
    memcpy(letters, all, sizeof letters);
}

static void put_distance(struct writer *to, uint32_t distance)
{
    uint32_t from = distance - 1, symbol = from, extra = 0;
    if (from >= 4) {
        uint32_t top = 31 - (uint32_t)__builtin_clz(from);
        extra = top - 1;
        symbol = 2 * top + (from >> extra & 1);
    }
    put(to, distances[symbol].bits, distances[symbol].size);
    put(to, from & ((1u << extra) - 1), extra);
}

static uint32_t four(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static unsigned char *put_number(unsigned char *out, uint32_t number)
{
    for (int byte = 0; byte < 4; byte++)
        *out++ = (unsigned char)(number >> 8 * byte);
    return out;
}

size_t deflate_member(const unsigned char *in, size_t size, unsigned char out[DEFLATE_ROOM])
{
    uint16_t places[1 << PLACES_BITS] = {0}; /* behind the first of the last four letters that are like these */
    if (size > DEFLATE_MOST)
        return 0;
    if (!letters[END].size)
        tables_fill();
    memcpy(out, GZIP_HEAD, sizeof GZIP_HEAD);
    memcpy(out + sizeof GZIP_HEAD, deflate_head, DEFLATE_HEAD_BITS / 8);
    struct writer to = {out + sizeof GZIP_HEAD + DEFLATE_HEAD_BITS / 8, deflate_head[DEFLATE_HEAD_BITS / 8],
                        DEFLATE_HEAD_BITS % 8};
    for (size_t at = 0, length; at < size; at += length) {
        length = 1;
        if (size - at >= LEAST_MATCH) {
            uint16_t *place = places + (four(in + at) * 2654435761u >> (32 - PLACES_BITS));
            size_t before = *place;
            *place = (uint16_t)(at + 1);
            if (before && four(in + before - 1) == four(in + at)) {
                size_t most = size - at < MOST_MATCH ? size - at : MOST_MATCH;
                for (length = LEAST_MATCH; length < most && in[before - 1 + length] == in[at + length];)
                    length++;
                put(&to, lengths[length].bits, lengths[length].size);
                put_distance(&to, (uint32_t)(at + 1 - before));
            }
        }
        if (length == 1) {
            const struct code *letter = letters + in[at];
            if (!letter->size)
                return 0;
            put(&to, letter->bits, letter->size);
        }
        if (to.count >= FULL)
            spill(&to);
    }
    put(&to, letters[END].bits, letters[END].size);
    to.count += 7; /* the last byte is a whole one */
    spill(&to);
    return (size_t)(put_number(put_number(to.out, checksum_crc32(in, size)), (uint32_t)size) - out);
}
