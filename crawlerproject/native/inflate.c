/*
 * A whole gzip member in memory, inflated in one piece (RFC 1951, RFC 1952), its CRC-32 and its size checked.
 *
 * Archives hold a member a record, most of less than a kilobyte: isal's tables are made for long streams, and its calls
 * copy what follows. Only what is beyond doubt is read here: a header without flags, complete codes. All else isal
 * inflates, and judges (rules/archive/warc_members.py).
 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum {
    LITERAL_BITS = 10, /* looked up at once; longer codes take a second look */
    DISTANCE_BITS = 8,
    LENGTH_BITS = 7, /* RFC 1951 3.2.7: all that a code of code lengths has */
    MOST_BITS = 15,
    LITERALS = 288,
    DISTANCES = 32,
    LENGTHS = 19,
    END = 256,
    LITERAL_ROOM = 2048, /* entries; 288 codes need at most 1,334, 32 at most 402 (zlib's enough.c) */
    DISTANCE_ROOM = 512,
    FEWEST_ROOM = 4096, /* bytes of output, at first */
    MARGIN = 320,       /* that one turn may write: three literals, a match of 258, what a copy of eights goes beyond */
    HEADER = 10,
    TRAILER = 8,
};

/* Of an entry the low five bits are the bits to drop, the upper sixteen a literal, a base or the place of a subtable; four
 * between them the extra bits, of a subtable its bits. */
enum { IS_LITERAL = 0x8000, IS_SUBTABLE = 0x4000, IS_END = 0x2000, IS_WRONG = 0x1000 };
#define DROP(entry) ((entry)&31)
#define EXTRA(entry) ((entry) >> 8 & 15)
#define VALUE(entry) ((entry) >> 16)
#define WITH(value, extra) ((uint32_t)(value) << 16 | (uint32_t)(extra) << 8)
#define ALWAYS inline __attribute__((always_inline))
#define LOW(bits, count) ((bits) & (((uint64_t)1 << (count)) - 1))

/* RFC 1951 3.2.5. */
static const uint32_t MATCHES[LITERALS - END] = {
    IS_END,        WITH(3, 0),   WITH(4, 0),   WITH(5, 0),   WITH(6, 0),   WITH(7, 0),   WITH(8, 0),   WITH(9, 0),
    WITH(10, 0),   WITH(11, 1),  WITH(13, 1),  WITH(15, 1),  WITH(17, 1),  WITH(19, 2),  WITH(23, 2),  WITH(27, 2),
    WITH(31, 2),   WITH(35, 3),  WITH(43, 3),  WITH(51, 3),  WITH(59, 3),  WITH(67, 4),  WITH(83, 4),  WITH(99, 4),
    WITH(115, 4),  WITH(131, 5), WITH(163, 5), WITH(195, 5), WITH(227, 5), WITH(258, 0), IS_WRONG,     IS_WRONG,
};
static const uint32_t BACK[DISTANCES] = {
    WITH(1, 0),     WITH(2, 0),     WITH(3, 0),      WITH(4, 0),      WITH(5, 1),     WITH(7, 1),     WITH(9, 2),
    WITH(13, 2),    WITH(17, 3),    WITH(25, 3),     WITH(33, 4),     WITH(49, 4),    WITH(65, 5),    WITH(97, 5),
    WITH(129, 6),   WITH(193, 6),   WITH(257, 7),    WITH(385, 7),    WITH(513, 8),   WITH(769, 8),   WITH(1025, 9),
    WITH(1537, 9),  WITH(2049, 10), WITH(3073, 10),  WITH(4097, 11),  WITH(6145, 11), WITH(8193, 12), WITH(12289, 12),
    WITH(16385, 13), WITH(24577, 13), IS_WRONG,      IS_WRONG,
};
static const unsigned char ORDER[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

struct bits {
    const unsigned char *in, *end;
    uint64_t held; /* the lowest comes first; above ``count`` there may be some that are read again */
    unsigned count;
    unsigned beyond; /* bytes of zeros that were taken for what follows the end */
};

struct tables {
    uint32_t literals[LITERAL_ROOM], distances[DISTANCE_ROOM], lengths[1 << LENGTH_BITS];
};

/* At least 56 bits; false long after the end. */
static ALWAYS bool refill(struct bits *bits)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (bits->end - bits->in >= 8) {
        uint64_t next;
        memcpy(&next, bits->in, sizeof next);
        bits->held |= next << bits->count;
        bits->in += (63 - bits->count) >> 3;
        bits->count |= 56;
        return true;
    }
#endif
    for (; bits->count < 56; bits->count += 8)
        if (bits->in < bits->end)
            bits->held |= (uint64_t)*bits->in++ << bits->count;
        else
            bits->beyond++;
    return bits->beyond <= 16;
}

static ALWAYS unsigned take(struct bits *bits, unsigned count)
{
    unsigned value = (unsigned)LOW(bits->held, count);
    bits->held >>= count;
    bits->count -= count;
    return value;
}

/* Back to the first byte of which no bit was taken; false if that is after the end. */
static bool whole_byte(struct bits *bits)
{
    unsigned unread = bits->count >> 3;
    if (unread < bits->beyond)
        return false;
    bits->in -= unread - bits->beyond;
    bits->held = bits->count = bits->beyond = 0;
    return true;
}

/* Makes a table of 1 << *bits entries, each of which stands for all that end alike, one of 1 << wide. */
static ALWAYS void widened(uint32_t *table, unsigned *bits, unsigned wide)
{
    for (; *bits < wide; ++*bits)
        memcpy(table + (1u << *bits), table, sizeof *table << *bits);
}

/* The table of a code by the lengths of its words; false if it is not complete. A word's bits come in turned round. */
static bool table_fill(uint32_t *table, unsigned room, unsigned wide, const unsigned char *lengths, unsigned count,
                       const uint32_t *symbols)
{
    unsigned counts[MOST_BITS + 1] = {0}, next[MOST_BITS + 2] = {0};
    unsigned short sorted[LITERALS];
    int left = 1;
    for (unsigned symbol = 0; symbol < count; symbol++)
        counts[lengths[symbol]]++;
    for (unsigned length = 1; length <= MOST_BITS; length++) {
        if ((left = 2 * left - (int)counts[length]) < 0)
            return false;
        next[length + 1] = next[length] + counts[length];
    }
    if (left)
        return false;
    unsigned words = next[MOST_BITS + 1], used = 1u << wide, word = 0, place = 0, length = 1, bits = 0;
    for (unsigned symbol = 0; symbol < count; symbol++)
        if (lengths[symbol])
            sorted[next[lengths[symbol]]++] = (unsigned short)symbol;
    for (; place < words; place++) {
        uint32_t entry = symbols[sorted[place]];
        while (!counts[length])
            length++;
        counts[length]--;
        widened(table, &bits, length < wide ? length : wide);
        if (length <= wide)
            table[word] = entry | length;
        else {
            unsigned stem = (unsigned)LOW(word, wide);
            if (!(word >> wide)) { /* the first of its stem; words of one stem follow each other, the longest last */
                unsigned deep = length, beneath = counts[length] + 1;
                for (; beneath < 1u << (deep - wide); beneath = 2 * beneath + counts[deep])
                    if (++deep > MOST_BITS)
                        return false;
                if (used + (1u << (deep - wide)) > room)
                    return false;
                table[stem] = WITH(used, deep - wide) | IS_SUBTABLE | wide;
                used += 1u << (deep - wide);
            }
            unsigned start = VALUE(table[stem]), size = 1u << EXTRA(table[stem]);
            for (unsigned at = word >> wide; at < size; at += 1u << (length - wide))
                table[start + at] = entry | (length - wide);
        }
        unsigned bit = 1u << (length - 1);
        for (; bit && word & bit; bit >>= 1)
            word ^= bit;
        word |= bit;
    }
    widened(table, &bits, wide);
    return true;
}

/* Distances may be one word of one bit, or none. */
static bool distances_fill(struct tables *tables, const unsigned char *lengths, unsigned count)
{
    unsigned used = 0, last = 0;
    for (unsigned symbol = 0; symbol < count; symbol++)
        if (lengths[symbol]) {
            used++;
            last = symbol;
        }
    if (used > 1)
        return table_fill(tables->distances, DISTANCE_ROOM, DISTANCE_BITS, lengths, count, BACK);
    if (used && lengths[last] != 1)
        return false;
    for (unsigned at = 0; at < 1 << DISTANCE_BITS; at++)
        tables->distances[at] = used && !(at & 1) ? BACK[last] | 1 : IS_WRONG;
    return true;
}

static uint32_t literal_symbols[LITERALS];

static void symbols_fill(void)
{
    for (unsigned symbol = 0; symbol < END; symbol++)
        literal_symbols[symbol] = WITH(symbol, 0) | IS_LITERAL;
    memcpy(literal_symbols + END, MATCHES, sizeof MATCHES);
}

static const struct tables *fixed_tables(void)
{
    static struct tables tables;
    static bool filled;
    if (filled)
        return &tables;
    unsigned char lengths[LITERALS + DISTANCES];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    memset(lengths + LITERALS, 5, DISTANCES);
    filled = table_fill(tables.literals, LITERAL_ROOM, LITERAL_BITS, lengths, LITERALS, literal_symbols)
             && distances_fill(&tables, lengths + LITERALS, DISTANCES);
    return &tables;
}

static bool own_tables(struct tables *tables, struct bits *bits)
{
    static const uint32_t length_symbols[LENGTHS] = {
        WITH(0, 0),  WITH(1, 0),  WITH(2, 0),  WITH(3, 0),  WITH(4, 0),  WITH(5, 0),  WITH(6, 0),
        WITH(7, 0),  WITH(8, 0),  WITH(9, 0),  WITH(10, 0), WITH(11, 0), WITH(12, 0), WITH(13, 0),
        WITH(14, 0), WITH(15, 0), WITH(16, 2), WITH(17, 3), WITH(18, 7),
    };
    unsigned char lengths[LITERALS + DISTANCES] = {0}, first[LENGTHS] = {0};
    unsigned literals = take(bits, 5) + 257, distances = take(bits, 5) + 1, given = take(bits, 4) + 4, done = 0;
    if (literals > 286 || distances > 30)
        return false;
    for (unsigned place = 0; place < given; place++) {
        if (!refill(bits))
            return false;
        first[ORDER[place]] = (unsigned char)take(bits, 3);
    }
    if (!table_fill(tables->lengths, 1 << LENGTH_BITS, LENGTH_BITS, first, LENGTHS, length_symbols))
        return false;
    while (done < literals + distances) {
        if (!refill(bits))
            return false;
        uint32_t entry = tables->lengths[LOW(bits->held, LENGTH_BITS)];
        unsigned value = VALUE(entry), times = 1;
        take(bits, DROP(entry));
        if (value > MOST_BITS) {
            times = take(bits, EXTRA(entry)) + (value == 18 ? 11 : 3);
            if (value == 16 && !done)
                return false;
            value = value == 16 ? lengths[done - 1] : 0;
        }
        if (times > literals + distances - done)
            return false;
        memset(lengths + done, (int)value, times);
        done += times;
    }
    return lengths[END]
           && table_fill(tables->literals, LITERAL_ROOM, LITERAL_BITS, lengths, literals, literal_symbols)
           && distances_fill(tables, lengths + literals, distances);
}

/* Those of the code that deflate.c has, whose head is taken; NULL where another block begins. */
static const struct tables *known_tables(struct bits *bits)
{
    enum { BYTES = DEFLATE_HEAD_BITS / 8, REST = DEFLATE_HEAD_BITS % 8 };
    static struct tables tables;
    static bool filled;
    if (bits->end - bits->in <= BYTES + 8 || memcmp(bits->in, deflate_head, BYTES)
        || LOW(bits->in[BYTES] ^ deflate_head[BYTES], REST))
        return NULL;
    struct bits head = *bits;
    if (!filled && !(filled = refill(&head) && take(&head, 3) && own_tables(&tables, &head)))
        return NULL;
    bits->in += BYTES;
    refill(bits);
    take(bits, REST);
    return &tables;
}

static bool grown(struct page_buffer *out, size_t wanted, size_t most)
{
    size_t capacity = out->capacity < FEWEST_ROOM ? FEWEST_ROOM : out->capacity;
    if (wanted > most + MARGIN)
        return false;
    while (capacity < wanted)
        capacity *= 2;
    unsigned char *data = realloc(out->data, capacity);
    if (!data)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

static bool stored(struct bits *bits, struct page_buffer *out, size_t most)
{
    if (!whole_byte(bits) || bits->end - bits->in < 4)
        return false;
    size_t size = (size_t)(bits->in[0] | bits->in[1] << 8), turned = (size_t)(bits->in[2] | bits->in[3] << 8);
    if ((size ^ turned) != 0xffff)
        return false;
    bits->in += 4;
    if ((size_t)(bits->end - bits->in) < size)
        return false;
    if (out->capacity - out->size < size + MARGIN && !grown(out, out->size + size + MARGIN, most))
        return false;
    memcpy(out->data + out->size, bits->in, size);
    out->size += size;
    bits->in += size;
    return true;
}

static ALWAYS void copied(unsigned char *to, size_t distance, size_t size)
{
    const unsigned char *from = to - distance, *end = to + size;
    if (distance >= 16)
        do { /* most matches are done with the first */
            memcpy(to, from, 16);
            to += 16;
            from += 16;
        } while (to < end);
    else if (distance == 1)
        memset(to, *from, size);
    else
        while (to < end)
            *to++ = *from++;
}

#define TAKE_LITERAL \
    take(&bits, DROP(entry)); \
    data[at++] = (unsigned char)VALUE(entry); \
    entry = tables->literals[LOW(bits.held, LITERAL_BITS)];

static ALWAYS bool coded_here(const struct tables *tables, struct bits *given, struct page_buffer *out, size_t most)
{
    struct bits bits = *given;
    unsigned char *data = out->data; /* and its room: not read anew after each byte, which might be part of them */
    size_t at = out->size, room = out->capacity < MARGIN ? 0 : out->capacity - MARGIN;
    bool ended = false;
    if (!refill(&bits))
        return false;
    uint32_t entry = tables->literals[LOW(bits.held, LITERAL_BITS)];
    for (;;) {
        if (at > room || !data) {
            if (!grown(out, at + MARGIN, most))
                break;
            data = out->data;
            room = out->capacity - MARGIN;
        }
        if (entry & IS_LITERAL) { /* up to three: words of ten bits each */
            TAKE_LITERAL
            if (entry & IS_LITERAL) {
                TAKE_LITERAL
                if (entry & IS_LITERAL) {
                    TAKE_LITERAL
                }
            }
        }
        if (!refill(&bits)) /* a match takes up to 48 bits */
            break;
        if (entry & IS_LITERAL)
            continue;
        if (entry & IS_SUBTABLE) {
            take(&bits, DROP(entry));
            entry = tables->literals[VALUE(entry) + LOW(bits.held, EXTRA(entry))];
        }
        take(&bits, DROP(entry));
        if (entry & IS_LITERAL) {
            data[at++] = (unsigned char)VALUE(entry);
            entry = tables->literals[LOW(bits.held, LITERAL_BITS)];
            continue;
        }
        if (entry & (IS_END | IS_WRONG)) {
            ended = entry & IS_END;
            break;
        }
        size_t size = VALUE(entry) + take(&bits, EXTRA(entry));
        entry = tables->distances[LOW(bits.held, DISTANCE_BITS)];
        if (entry & IS_SUBTABLE) {
            take(&bits, DROP(entry));
            entry = tables->distances[VALUE(entry) + LOW(bits.held, EXTRA(entry))];
        }
        if (entry & IS_WRONG)
            break;
        take(&bits, DROP(entry));
        size_t distance = VALUE(entry) + take(&bits, EXTRA(entry));
        if (distance > at || !refill(&bits))
            break;
        entry = tables->literals[LOW(bits.held, LITERAL_BITS)]; /* is on its way while the match is copied */
        copied(data + at, distance, size);
        at += size;
    }
    out->size = at;
    *given = bits;
    return ended;
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static bool coded_bmi2(const struct tables *tables, struct bits *bits,
                                                       struct page_buffer *out, size_t most)
{
    return coded_here(tables, bits, out, most);
}
#endif

static bool coded(const struct tables *tables, struct bits *bits, struct page_buffer *out, size_t most)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2")) /* shifts by a number that is known late, which is all that there is to do */
        return coded_bmi2(tables, bits, out, most);
#endif
    return coded_here(tables, bits, out, most);
}

static uint32_t number(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool inflate_member(const unsigned char *in, size_t size, struct page_buffer *out, size_t most, size_t *used)
{
    static const unsigned char plain[] = {0x1f, 0x8b, 8, 0};
    static struct tables tables; /* Python's lock is held */
    if (size < HEADER || memcmp(in, plain, sizeof plain))
        return false;
    if (!literal_symbols[END])
        symbols_fill();
    out->size = 0;
    struct bits bits = {in + HEADER, in + size, 0, 0, 0};
    const struct tables *known = known_tables(&bits);
    bool good = !known || coded(known, &bits, out, most);
    for (unsigned last = known != NULL; good && !last;) {
        if (!refill(&bits))
            return false;
        last = take(&bits, 1);
        switch (take(&bits, 2)) {
        case 0:
            good = stored(&bits, out, most);
            break;
        case 1:
            good = coded(fixed_tables(), &bits, out, most);
            break;
        case 2:
            good = own_tables(&tables, &bits) && coded(&tables, &bits, out, most);
            break;
        default:
            return false;
        }
    }
    if (!good || !whole_byte(&bits) || bits.end - bits.in < TRAILER || out->size > most
        || number(bits.in) != checksum_crc32(out->data, out->size) || number(bits.in + 4) != (uint32_t)out->size)
        return false;
    *used = (size_t)(bits.in - in) + TRAILER;
    return true;
}
