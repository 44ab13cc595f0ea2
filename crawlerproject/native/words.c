/*
 * Words of a text in UTF-8, and the SimHash of its beginning: rules/page/words.py and rules/duplicates/simhash.py say
 * why they are made as they are; here they are made the same in one pass without an object.
 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum byte_class {
    IN_WORD,
    BLANK,
    MAY_BE_NO_BREAK_SPACE, /* C2 A0 */
    MAY_BE_CJK,            /* E3 and above */
};

/* words.py: _BLANK_BYTES. */
#define W IN_WORD
#define B BLANK
#define N MAY_BE_NO_BREAK_SPACE
#define C MAY_BE_CJK
static const unsigned char CLASSES[256] = {
    W, W, W, W, W, W, W, W, W, B, B, B, B, B, W, W, W, W, W, W, W, W, W, W, W, W, W, W, B, B, B, B,
    B, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, N, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,
    W, W, W, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
};
#undef W
#undef B
#undef N
#undef C

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

bool words_is_utf8(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        if (size - at >= STEP && !(eight(text + at) & HIGHS)) {
            at += STEP;
            continue;
        }
        size_t more = character_size(text + at, size - at);
        if (!more)
            return false;
        at += more;
    }
    return true;
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
        if (size - at >= STEP && !(eight(text + at) & HIGHS)) {
            at += STEP;
            continue;
        }
        if (text[at] >= 0xE3 && starts_cjk(text[at], text[at + 1]))
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

struct words {
    const unsigned char *at;
    const unsigned char *end;
    bool cjk;
};

/* The kind of what is at ``at``, and its size: BLANK, IN_WORD, or MAY_BE_CJK for what is a word of its own. */
static enum byte_class class_at(const struct words *words, const unsigned char *at, size_t *size)
{
    enum byte_class found = (enum byte_class)CLASSES[*at];
    *size = 1;
    if (found == MAY_BE_NO_BREAK_SPACE) {
        if (words->end - at < 2 || at[1] != 0xA0)
            return IN_WORD;
        *size = 2;
        return BLANK;
    }
    if (found == MAY_BE_CJK) {
        size_t bytes = *at < 0xF0 ? 3 : 4;
        if (!words->cjk || (size_t)(words->end - at) < bytes)
            return IN_WORD;
        *size = bytes;
        uint32_t point = point_at(at, bytes);
        return is_cjk(point) ? MAY_BE_CJK : point == IDEOGRAPHIC_SPACE ? BLANK : IN_WORD;
    }
    return found;
}

/* The next word; false at the end. */
static bool next_word(struct words *words, struct page_span *word)
{
    const unsigned char *at = words->at, *end = words->end;
    size_t size;
    for (; at < end; at += size) {
        enum byte_class found = class_at(words, at, &size);
        if (found == BLANK)
            continue;
        word->data = at;
        at += size;
        if (found == IN_WORD)
            while (at < end && class_at(words, at, &size) == IN_WORD)
                at += size;
        word->size = (size_t)(at - word->data);
        words->at = at;
        return true;
    }
    words->at = at;
    return false;
}

size_t words_count(const unsigned char *text, size_t size, bool cjk)
{
    size_t count = 0;
    if (!size)
        return 0;
    if (cjk) {
        struct words words = {text, text + size, true};
        struct page_span word;
        while (next_word(&words, &word))
            count++;
        return count;
    }
    bool inside = false;
    for (size_t at = 0; at < size; at++) {
        unsigned char found = CLASSES[text[at]];
        if (found == MAY_BE_NO_BREAK_SPACE && at + 1 < size && text[at + 1] == 0xA0) {
            inside = false;
            at++;
            continue;
        }
        bool in_word = found != BLANK;
        count += in_word & !inside;
        inside = in_word;
    }
    return count;
}

/* --- SimHash ---------------------------------------------------------------------------------------------------- */

/* words.py: _FIRST, _LAST, _SHIFT; simhash.py: _PLACES, _MIXING, _LAST_SHIFT. */
#define FIRST UINT64_C(0x9E3779B97F4A7C15)
#define LAST UINT64_C(0xBF58476D1CE4E5B9)
#define THIRD UINT64_C(0x94D049BB133111EB)
#define SHIFT 29
#define BITS 64
#define ROWS 255 /* that a sum of bits in one byte can hold */
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

/* Bit ``n`` of the index in byte ``n``. */
static uint64_t spread(unsigned byte)
{
    uint64_t copies = byte * ONES & UINT64_C(0x8040201008040201);
    return ((copies + (HIGHS - ONES)) | copies) >> 7 & ONES;
}

/* The bits that more than half of the features have. */
static uint64_t majority(const uint64_t *features, size_t count)
{
    uint64_t spreads[256], result = 0;
    size_t sums[BITS] = {0};
    for (unsigned byte = 0; byte < 256; byte++)
        spreads[byte] = spread(byte);
    for (size_t start = 0; start < count; start += ROWS) {
        uint64_t bytes[STEP] = {0};
        size_t end = count - start < ROWS ? count : start + ROWS;
        for (size_t place = start; place < end; place++)
            for (int byte = 0; byte < STEP; byte++)
                bytes[byte] += spreads[features[place] >> 8 * byte & 0xFF];
        for (int bit = 0; bit < BITS; bit++)
            sums[bit] += bytes[bit / 8] >> 8 * (bit % 8) & 0xFF;
    }
    for (int bit = 0; bit < BITS; bit++)
        result |= (uint64_t)(sums[bit] > count - sums[bit]) << bit;
    return result;
}

enum page_status words_fingerprint(const struct page_buffer *text, bool *has, uint64_t *fingerprint)
{
    *has = false;
    if (text->size < PAGE_MIN_WORDS)
        return PAGE_OK;
    struct words words = {text->data, text->data + text->size, words_has_cjk(text->data, text->size)};
    struct page_span word;
    uint64_t before[2] = {0, 0};
    size_t most = text->size < PAGE_MAX_WORDS ? text->size : PAGE_MAX_WORDS, count = 0, places;
    uint64_t *features = malloc(most * sizeof *features);
    if (!features)
        return PAGE_NO_MEMORY;
    while (count < most && next_word(&words, &word)) {
        uint64_t hash = word_hash(word);
        if (count >= 2)
            features[count - 2] = mixed(before[0] * FIRST + before[1] * LAST + hash * THIRD);
        before[0] = before[1];
        before[1] = hash;
        count++;
    }
    if (count < PAGE_MIN_WORDS) {
        free(features);
        return PAGE_OK;
    }
    count -= 2;
    for (places = 256; places < 2 * count; places *= 2)
        ;
    uint64_t *table = calloc(places, sizeof *table);
    if (!table) {
        free(features);
        return PAGE_NO_MEMORY;
    }
    count = unique(features, count, table, places - 1);
    *fingerprint = majority(features, count);
    *has = true;
    free(table);
    free(features);
    return PAGE_OK;
}
