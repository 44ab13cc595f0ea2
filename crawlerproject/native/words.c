/*
 * Words of a text in UTF-8, and the SimHash of its beginning: rules/page/text_fingerprint.py and rules/page/text_fingerprint.py say
 * why they are made as they are; here they are made the same in one pass without an object.
 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum byte_class {
    IN_WORD,
    BLANK,
    MAY_BE_NO_BREAK_SPACE, /* C2 A0 */
};

/* words.py: _BLANK_BYTES. */
static const unsigned char CLASSES[256] = {
    ['\t'] = BLANK, ['\n'] = BLANK, ['\v'] = BLANK, ['\f'] = BLANK, ['\r'] = BLANK, [0x1C] = BLANK,
    [0x1D] = BLANK, [0x1E] = BLANK, [0x1F] = BLANK, [' '] = BLANK,   [0xC2] = MAY_BE_NO_BREAK_SPACE,
};
#define NO_BREAK_SPACE_END 0xA0
#define LEAST_CJK_BYTE 0xE3

#define LEAST_BUFFER 1024
#define READ_BEHIND 8 /* bytes behind a buffer's end that may be read */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)
#define STEP 8 /* bytes that are read at once */

static uint64_t eight(const unsigned char *at)
{
    uint64_t bytes = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int place = STEP; place--;)
        bytes = bytes << 8 | at[place];
#else
    memcpy(&bytes, at, STEP);
#endif
    return bytes;
}

/* --- buffers ---------------------------------------------------------------------------------------------------- */

bool page_buffer_room(struct page_buffer *buffer, size_t size)
{
    if (size > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4)
        return false;
    size_t needed = buffer->size + size + READ_BEHIND;
    if (needed > buffer->capacity) {
        size_t capacity = needed < LEAST_BUFFER ? LEAST_BUFFER : 2 * needed;
        unsigned char *grown = realloc(buffer->data, capacity);
        if (!grown)
            return false;
        buffer->data = grown;
        buffer->capacity = capacity;
    }
    return true;
}

bool page_buffer_add(struct page_buffer *buffer, const unsigned char *data, size_t size)
{
    if (!page_buffer_room(buffer, size))
        return false;
    if (size)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    return true;
}

bool page_buffer_join(struct page_buffer *buffer, size_t count, const unsigned char *data, size_t size)
{
    if (count && !page_buffer_add(buffer, (const unsigned char *)" ", 1))
        return false;
    return page_buffer_add(buffer, data, size);
}

/* --- UTF-8 ------------------------------------------------------------------------------------------------------ */

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The bytes of the character at ``at``, of which ``left`` are there; 0 if it is none (Unicode, table 3-7). */
static size_t character_size(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (size < 2 || size > left)
        return size == 1;
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F))
        return 0;
    if ((first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F))
        return 0;
    for (size_t place = 1; place < size; place++)
        if (!is_continuation(at[place]))
            return 0;
    return size;
}

/* How far a text is ASCII, at least: in steps of four times eight bytes, then of eight. */
static size_t ascii_size(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (size - at >= 4 * STEP) {
        const unsigned char *here = text + at;
        if ((eight(here) | eight(here + STEP) | eight(here + 2 * STEP) | eight(here + 3 * STEP)) & HIGHS)
            break;
        at += 4 * STEP;
    }
    while (size - at >= STEP && !(eight(text + at) & HIGHS))
        at += STEP;
    return at;
}

bool words_is_utf8(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        if ((text[at] & 0x80) == 0) {
            size_t run = ascii_size(text + at, size - at);
            at += run ? run : 1;
            continue;
        }
        size_t more = character_size(text + at, size - at);
        if (!more)
            return false;
        at += more;
    }
    return true;
}

/* Digits and blanks of ASCII: in them alone a calendar's days differ (rules/text_likeness.py). */
static const unsigned char UNSAID[256] = {
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
    ['8'] = 1, ['9'] = 1, [' '] = 1, ['\t'] = 1, ['\r'] = 1, ['\n'] = 1, ['\f'] = 1,
};

#define BEHIND_UNSAID (':' * ONES) /* from there on no byte of ASCII is unsaid */

size_t words_said(const unsigned char *text, size_t size, unsigned char *out)
{
    size_t at = 0, left = 0;
    while (size - at >= STEP) {
        uint64_t bytes = eight(text + at), low = (bytes - BEHIND_UNSAID) & ~bytes & HIGHS;
        size_t run = low ? (size_t)__builtin_ctzll(low) / 8 : STEP;
        memcpy(out + left, text + at, STEP);
        at += run;
        left += run;
        if (low)
            left += !UNSAID[text[at++]];
    }
    for (; at < size; at++) {
        out[left] = text[at];
        left += !UNSAID[text[at]];
    }
    return left;
}

size_t words_characters(const unsigned char *text, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size; at++)
        count += !is_continuation(text[at]);
    return count;
}

/* --- words ------------------------------------------------------------------------------------------------------ */

/* By the first two bytes of a character, as _CJK_STARTS: whether it shares them with one of CJK_RANGES. */
static bool starts_cjk(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE3:
        return (second >= 0x81 && second <= 0x83) || second >= 0x90;
    case 0xE4:
        return second != 0xB7;
    case 0xE5:
    case 0xE6:
    case 0xE7:
    case 0xE8:
    case 0xE9:
    case 0xEB:
    case 0xEC:
        return true;
    case 0xEA:
        return second >= 0xB0;
    case 0xED:
        return second <= 0x9E;
    case 0xEF:
        return second >= 0xA4 && second <= 0xAB;
    case 0xF0:
        return second >= 0xA0;
    default:
        return false;
    }
}

bool words_has_cjk(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (at + 1 < size) {
        if (text[at] < 0x80) {
            size_t run = ascii_size(text + at, size - at);
            at += run ? run : 1;
            continue;
        }
        if (text[at] >= LEAST_CJK_BYTE && starts_cjk(text[at], text[at + 1]))
            return true;
        at++;
    }
    return false;
}

/* words.py: CJK_RANGES. */
static bool is_cjk(uint32_t point)
{
    return (point >= 0x3040 && point <= 0x30FF) || (point >= 0x3400 && point <= 0x4DBF) ||
           (point >= 0x4E00 && point <= 0x9FFF) || (point >= 0xAC00 && point <= 0xD7AF) ||
           (point >= 0xF900 && point <= 0xFAFF) || (point >= 0x20000 && point <= 0x3FFFF);
}

#define IDEOGRAPHIC_SPACE 0x3000

/* A character of three or four bytes. */
static uint32_t point_at(const unsigned char *at, size_t size)
{
    if (size == 3)
        return (uint32_t)(at[0] & 0x0F) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3F) << 12 | (uint32_t)(at[2] & 0x3F) << 6 |
           (at[3] & 0x3F);
}

/* What is left of a text. Behind its end are blanks, so that no word needs to look for it. */
struct words {
    const unsigned char *at;
    const unsigned char *end;
};

static struct words words_of(struct page_buffer *text)
{
    if (text->data)
        memset(text->data + text->size, ' ', STEP);
    return (struct words){text->data, text->data ? text->data + text->size : NULL};
}

/* The next word where nothing is CJK; false at the end. */
static inline bool next_plain(struct words *words, struct page_span *word)
{
    const unsigned char *at = words->at;
    unsigned char found;
    for (; at < words->end && (found = CLASSES[*at]) != IN_WORD; at++) {
        if (found == BLANK)
            continue;
        if (at[1] != NO_BREAK_SPACE_END)
            break;
        at++;
    }
    word->data = at;
    if (at >= words->end)
        return false;
    while ((found = CLASSES[*at]) != BLANK) {
        if (found == MAY_BE_NO_BREAK_SPACE && at[1] == NO_BREAK_SPACE_END)
            break;
        at++;
    }
    word->size = (size_t)(at - word->data);
    words->at = at;
    return true;
}

enum character {
    LETTER,
    GAP,
    WORD, /* by itself */
};

/* What the character at ``at`` is, in a text with CJK, and its size. */
static enum character character_at(const struct words *words, const unsigned char *at, size_t *size)
{
    *size = 1;
    if (CLASSES[*at] == MAY_BE_NO_BREAK_SPACE) {
        *size = 2;
        return at[1] == NO_BREAK_SPACE_END ? GAP : LETTER;
    }
    if (*at < LEAST_CJK_BYTE)
        return CLASSES[*at] == BLANK ? GAP : LETTER;
    *size = *at < 0xF0 ? 3 : 4;
    if (*size > (size_t)(words->end - at))
        *size = 1;
    if (*size == 1)
        return LETTER;
    uint32_t point = point_at(at, *size);
    return is_cjk(point) ? WORD : point == IDEOGRAPHIC_SPACE ? GAP : LETTER;
}

/* The next word where some are CJK; false at the end. */
static bool next_cjk(struct words *words, struct page_span *word)
{
    const unsigned char *at = words->at, *end = words->end;
    enum character found = GAP;
    size_t size = 0;
    for (; at < end && (found = character_at(words, at, &size)) == GAP; at += size)
        ;
    if (at >= end)
        return false;
    word->data = at;
    at += size;
    while (found == LETTER && at < end && character_at(words, at, &size) == LETTER)
        at += size;
    word->size = (size_t)(at - word->data);
    words->at = at;
    return true;
}

static bool next_word(struct words *words, bool cjk, struct page_span *word)
{
    return cjk ? next_cjk(words, word) : next_plain(words, word);
}

size_t words_count(struct page_buffer *text, bool cjk)
{
    struct words words = words_of(text);
    struct page_span word;
    size_t count = 0;
    while (next_word(&words, cjk, &word))
        count++;
    return count;
}

/* --- SimHash ---------------------------------------------------------------------------------------------------- */

/* words.py: _FIRST, _LAST, _SHIFT; simhash.py: _PLACES, _MIXING, _LAST_SHIFT. */
#define FIRST UINT64_C(0x9E3779B97F4A7C15)
#define LAST UINT64_C(0xBF58476D1CE4E5B9)
#define THIRD UINT64_C(0x94D049BB133111EB)
#define SHIFT 29
#define BITS 64
#define SHINGLE 3 /* words */
#define LEAST_PLACES 256
#define PLACES_A_FEATURE 8 /* looked at in the table, on average far fewer; more, and the features are sorted instead */

/* ASCII letters in lower case, all eight bytes at once. */
static uint64_t lowered(uint64_t bytes)
{
    uint64_t low = bytes & ~HIGHS;
    uint64_t from_a = low + ONES * (0x80 - 'A'), behind_z = low + ONES * (0x7F - 'Z');
    return bytes | ((from_a ^ behind_z) & ~bytes & HIGHS) >> 2;
}

static uint64_t masked(uint64_t bytes, size_t size)
{
    return size >= STEP ? bytes : bytes & ((UINT64_C(1) << 8 * size) - 1);
}

/* By its first 16 bytes, its last 8 and its length. */
static uint64_t word_hash(struct page_span word)
{
    uint64_t hash = (lowered(masked(eight(word.data), word.size)) + word.size) * FIRST;
    hash ^= hash >> SHIFT;
    if (word.size > STEP) {
        size_t rest = word.size - STEP;
        uint64_t more = lowered(masked(eight(word.data + STEP), rest));
        more += lowered(eight(word.data + rest)) * LAST;
        more ^= more >> SHIFT;
        hash ^= more * FIRST;
    }
    return hash;
}

static uint64_t mixed(uint64_t shingle)
{
    shingle = (shingle ^ shingle >> 30) * LAST;
    shingle = (shingle ^ shingle >> 27) * THIRD;
    return shingle ^ shingle >> 31;
}

static int compared(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

static size_t sorted_unique(uint64_t *features, size_t count)
{
    size_t kept = 0;
    qsort(features, count, sizeof *features, compared);
    for (size_t place = 0; place < count; place++)
        if (!kept || features[kept - 1] != features[place])
            features[kept++] = features[place];
    return kept;
}

/*
 * Leaves each feature once, and returns how many these are. ``table`` has ``mask + 1`` places, at least twice as many
 * as there are features, all 0. A text can be made whose features fall on one place: then they are sorted.
 */
static size_t unique(uint64_t *features, size_t count, uint64_t *table, size_t mask)
{
    size_t kept = 0, looks = 0;
    bool zero = false;
    for (size_t place = 0; place < count; place++) {
        uint64_t feature = features[place];
        size_t at = (size_t)feature & mask;
        if (!feature) {
            if (!zero)
                features[kept++] = 0;
            zero = true;
            continue;
        }
        while (table[at] && table[at] != feature) {
            at = (at + 1) & mask;
            if (++looks > count * PLACES_A_FEATURE) {
                /* Those that were kept stand before those that come. */
                memmove(features + kept, features + place, (count - place) * sizeof *features);
                return sorted_unique(features, kept + count - place);
            }
        }
        if (!table[at])
            features[kept++] = table[at] = feature;
    }
    return kept;
}

#define PLANES 14 /* sums up to PAGE_MAX_WORDS */

_Static_assert(PAGE_MAX_WORDS < 1 << PLANES, "a sum of bits must not overflow");

/* Adds three bits at each of 64 places: ``*sum`` is the bit that stays, the result the one that is carried. */
static inline uint64_t carried(uint64_t *sum, uint64_t one, uint64_t other)
{
    uint64_t either = *sum ^ one, carry = (*sum & one) | (either & other);
    *sum = either ^ other;
    return carry;
}

/* Adds 64 bits to 64 sums, from plane ``plane`` on: bit ``n`` of each plane belongs to sum ``n``. */
static inline void add_bits(uint64_t *planes, int plane, uint64_t bits)
{
    for (; bits && plane < PLANES; plane++) {
        uint64_t carry = planes[plane] & bits;
        planes[plane] ^= bits;
        bits = carry;
    }
}

/* The bits that more than half of the features have. Sums stand upright: four features take seven additions. */
static uint64_t majority(const uint64_t *features, size_t count)
{
    uint64_t planes[PLANES] = {0}, result = 0;
    size_t place = 0;
    for (; count - place >= 4; place += 4) {
        uint64_t twos = carried(&planes[0], features[place], features[place + 1]);
        uint64_t more = carried(&planes[0], features[place + 2], features[place + 3]);
        add_bits(planes, 2, carried(&planes[1], twos, more));
    }
    for (; place < count; place++)
        add_bits(planes, 0, features[place]);
    for (int bit = 0; bit < BITS; bit++) {
        size_t sum = 0;
        for (int plane = PLANES; plane--;)
            sum = sum << 1 | (planes[plane] >> bit & 1);
        result |= (uint64_t)(sum > count - sum) << bit;
    }
    return result;
}

/* The fingerprint of ``count`` features, which may be there more than once. */
static enum page_status summed(uint64_t *features, size_t count, uint64_t *fingerprint)
{
    size_t places = LEAST_PLACES;
    while (places < 2 * count)
        places *= 2;
    uint64_t *table = calloc(places, sizeof *table);
    if (!table)
        return PAGE_NO_MEMORY;
    count = unique(features, count, table, places - 1);
    free(table);
    *fingerprint = majority(features, count);
    return PAGE_OK;
}

enum page_status words_read(struct page_buffer *text, size_t *count, bool *has, uint64_t *fingerprint)
{
    bool cjk = words_has_cjk(text->data, text->size);
    struct words words = words_of(text);
    struct page_span word;
    uint64_t before = 0, last = 0;
    size_t most = text->size < PAGE_MAX_WORDS ? text->size : PAGE_MAX_WORDS;
    *has = false;
    *count = 0;
    uint64_t *features = malloc((most + 1) * sizeof *features);
    if (!features)
        return PAGE_NO_MEMORY;
    for (; next_word(&words, cjk, &word); ++*count) {
        if (*count >= most)
            continue;
        uint64_t hash = word_hash(word);
        if (*count >= SHINGLE - 1)
            features[*count - (SHINGLE - 1)] = mixed(before * FIRST + last * LAST + hash * THIRD);
        before = last;
        last = hash;
    }
    enum page_status status = PAGE_OK;
    if (*count >= PAGE_MIN_WORDS) {
        *has = true;
        status = summed(features, (*count < most ? *count : most) - (SHINGLE - 1), fingerprint);
    }
    free(features);
    return status;
}
