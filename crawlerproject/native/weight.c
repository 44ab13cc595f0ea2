/*
 * Whether a page would cost the parser far more than its size: rules/page/body.py says which shapes do and
 * where the limits come from; this is the same decision on the same bytes. Where Python estimates first and counts
 * exactly if the estimate is too high, this counts exactly at once.
 */
#define _GNU_SOURCE /* memrchr */
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum weight { LIGHT, HEAVY, BOMB };

#define MAX_ATTRIBUTES 1000
#define LONG_TAG_BYTES 3000
#define ENDS_TRIED 8
#define QUOTE_BLANKS 64 /* bytes before a quote in which its "=" is looked for */
#define FEW_TAGS 450
#define LIGHT_REPEATS 50000
#define MAX_REPEATS 1000000
#define LIGHT_OPTIONS 1500
#define MAX_OPTIONS 12000
#define LIGHT_TAGS 5000
#define SHALLOW_TAGS 14000
#define MAX_STEPS 200000000

static bool is_letter(unsigned char byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/* Python's \s for bytes. */
static bool is_blank(unsigned char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* --- attributes of one tag -------------------------------------------------------------------------------------- */

static size_t past_blanks(const unsigned char *text, size_t at, size_t size)
{
    while (at < size && is_blank(text[at]))
        at++;
    return at;
}

/* Where an attribute's name ends that begins at ``at``; ``at`` if none does. A "=" may begin one, and ends any. */
static size_t past_name(const unsigned char *text, size_t at, size_t size)
{
    size_t start = at;
    while (at < size && !is_blank(text[at]) && text[at] != '>' && text[at] != '/' && (text[at] != '=' || at == start))
        at++;
    return at;
}

static size_t past_value(const unsigned char *text, size_t at, size_t size)
{
    if (at < size && (text[at] == '"' || text[at] == '\'')) {
        const unsigned char *close = memchr(text + at + 1, text[at], size - at - 1);
        return close ? (size_t)(close - text) + 1 : size;
    }
    while (at < size && !is_blank(text[at]) && text[at] != '>')
        at++;
    return at;
}

/* The end of the attribute at ``at``, with blanks and slashes before it; ``at`` if there is none. _ATTRIBUTE. */
static size_t past_attribute(const unsigned char *text, size_t at, size_t size)
{
    size_t name = at;
    while (name < size && (is_blank(text[name]) || text[name] == '/'))
        name++;
    size_t end = past_name(text, name, size);
    if (end == name)
        return at;
    size_t sign = past_blanks(text, end, size);
    if (sign == size || text[sign] != '=')
        return end;
    return past_value(text, past_blanks(text, sign + 1, size), size);
}

/* Where the tag at ``at`` ends; 0 if it has more than MAX_ATTRIBUTES. _EXCESS. */
static size_t past_tag(const unsigned char *text, size_t at, size_t size)
{
    at += 2;
    while (at < size && !is_blank(text[at]) && text[at] != '>' && text[at] != '/')
        at++;
    for (size_t count = 0; count <= MAX_ATTRIBUTES; count++) {
        size_t end = past_attribute(text, at, size);
        if (end == at)
            return at;
        at = end;
    }
    return 0;
}

/* Where the next tag starts, from ``at`` on; ``size`` if none does. */
static size_t next_start(const unsigned char *text, size_t at, size_t size)
{
    while (at < size) {
        const unsigned char *sign = memchr(text + at, '<', size - at);
        if (!sign)
            return size;
        at = (size_t)(sign - text);
        if (at + 1 < size && is_letter(text[at + 1]))
            return at;
        at++;
    }
    return size;
}

/* The last ``byte`` in [start, end), as its place + 1; 0 if there is none. */
static size_t last(const unsigned char *text, unsigned char byte, size_t start, size_t end)
{
#ifdef __linux__
    const unsigned char *found = memrchr(text + start, byte, end - start);
    return found ? (size_t)(found - text) + 1 : 0;
#else
    while (end > start && text[end - 1] != byte)
        end--;
    return end > start ? end : 0;
#endif
}

/* Whether the ">" at ``end`` may stand in a quoted value; none is open at ``start``. */
static bool may_be_quoted(const unsigned char *text, size_t start, size_t end)
{
    static const unsigned char quotes[2] = {'"', '\''};
    for (int quote = 0; quote < 2; quote++) {
        size_t opened = last(text, quotes[quote], start, end);
        if (!opened || opened - 1 <= start)
            continue;
        size_t at = opened - 1, least = at - start > QUOTE_BLANKS ? at - QUOTE_BLANKS : start;
        while (at > least && is_blank(text[at - 1]) && text[at - 1] != '\v')
            at--;
        if (at == least || text[at - 1] == '=')
            return true;
    }
    return false;
}

/* Whether no tag is open at the returned place, within LONG_TAG_BYTES behind ``at``; 0 if that takes reading it. */
static size_t near_end(const unsigned char *text, size_t at)
{
    size_t end = last(text, '>', at, at + LONG_TAG_BYTES);
    for (int tries = ENDS_TRIED; end && tries; tries--) {
        if (!may_be_quoted(text, at, end - 1))
            return end;
        end = last(text, '>', at, end - 1);
    }
    return 0;
}

static bool has_crowded_tag(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (size > LONG_TAG_BYTES && at < size - LONG_TAG_BYTES) {
        size_t reach = at + LONG_TAG_BYTES, end = near_end(text, at);
        if (end) {
            at = end;
            continue;
        }
        while (at < reach) {
            size_t start = next_start(text, at, size);
            if (start == size)
                return false;
            at = past_tag(text, start, size);
            if (!at)
                return true;
        }
    }
    return false;
}

/* --- formatting elements ---------------------------------------------------------------------------------------- */

static const char *const FORMATTING[] = {"b",     "big", "code",   "em",     "font", "i",
                                         "s", "small", "strike", "strong", "tt",   "u"};
#define FORMATTING_COUNT (sizeof FORMATTING / sizeof *FORMATTING)
#define LONGEST_FORMATTING 6

/* A short name as a number: its letters in lower case, one a byte. */
#define N1(a) ((uint64_t)(a))
#define N2(a, b) (N1(a) << 8 | (b))
#define N3(a, b, c) (N2(a, b) << 8 | (c))
#define N4(a, b, c, d) (N3(a, b, c) << 8 | (d))
#define N5(a, b, c, d, e) (N4(a, b, c, d) << 8 | (e))
#define N6(a, b, c, d, e, f) (N5(a, b, c, d, e) << 8 | (f))

/* The place of a name in FORMATTING; -1 if it is not there. */
static int formatting_place(uint64_t name)
{
    switch (name) {
    case N1('b'):
        return 0;
    case N3('b', 'i', 'g'):
        return 1;
    case N4('c', 'o', 'd', 'e'):
        return 2;
    case N2('e', 'm'):
        return 3;
    case N4('f', 'o', 'n', 't'):
        return 4;
    case N1('i'):
        return 5;
    case N1('s'):
        return 6;
    case N5('s', 'm', 'a', 'l', 'l'):
        return 7;
    case N6('s', 't', 'r', 'i', 'k', 'e'):
        return 8;
    case N6('s', 't', 'r', 'o', 'n', 'g'):
        return 9;
    case N2('t', 't'):
        return 10;
    case N1('u'):
        return 11;
    default:
        return -1;
    }
}

struct shape {
    size_t tags; /* "<" signs */
    size_t options;
    size_t formatting; /* the most formatting elements that are open at once */
};

/* The name's end: a blank, a slash, a ">". */
static size_t name_size(const unsigned char *text, size_t at, size_t size)
{
    size_t end = at;
    while (end < size && !is_blank(text[end]) && text[end] != '/' && text[end] != '>')
        end++;
    return end - at;
}

/* The formatting element whose name begins at ``at`` and is ended; -1 if none does. */
static int formatting_at(const unsigned char *text, size_t at, size_t size)
{
    size_t limit = size - at > LONGEST_FORMATTING ? at + LONGEST_FORMATTING : size;
    uint64_t name = 0;
    while (at < limit && is_letter(text[at]))
        name = name << 8 | text[at++] | 0x20;
    if (at == size || !(is_blank(text[at]) || text[at] == '/' || text[at] == '>'))
        return -1;
    return formatting_place(name);
}

static void measure(const unsigned char *text, size_t size, struct shape *shape)
{
    size_t still_open[FORMATTING_COUNT] = {0}, open = 0;
    const unsigned char *sign = size ? memchr(text, '<', size) : NULL;
    for (; sign; sign = memchr(sign + 1, '<', size - (size_t)(sign + 1 - text))) {
        size_t at = (size_t)(sign - text) + 1;
        bool closes = at < size && text[at] == '/';
        at += closes;
        shape->tags++;
        if (at + 1 >= size || !is_letter(text[at]))
            continue;
        shape->options += (text[at] | 0x20) == 'o' && (text[at + 1] | 0x20) == 'p';
        int name = formatting_at(text, at, size);
        if (name < 0)
            continue;
        if (!closes) {
            still_open[name]++;
            open++;
            if (open > shape->formatting)
                shape->formatting = open;
        } else if (still_open[name]) {
            still_open[name]--;
            open--;
        }
    }
}

/* --- depth of any element --------------------------------------------------------------------------------------- */

/* Void elements, and those whose end tag may be left out: parser_bombs.py's _NO_DEPTH. */
static const char *const NO_DEPTH[] = {
    "area",  "base",  "br", "col", "embed", "hr",     "img",      "input", "link", "meta",  "param", "source", "track",
    "wbr",   "p",     "li", "dt",  "dd",    "option", "optgroup", "tr",    "td",   "th",    "thead", "tbody",  "tfoot",
    "colgroup", "caption", "rp", "rt",
};
#define NO_DEPTH_COUNT (sizeof NO_DEPTH / sizeof *NO_DEPTH)

/* An element's name and how many of it are open. */
struct name {
    struct page_span text; /* as it was written the first time */
    uint64_t hash;
    size_t open;
    bool formatting;
    bool no_depth;
};

struct names {
    struct name *table;
    size_t mask;
    size_t count;
    uint64_t seed;
};

static uint64_t stirred(uint64_t one, uint64_t other)
{
    uint64_t low = one * (other | 1), high = (one >> 32) * (other >> 32);
    low ^= high ^ low >> 29;
    return low * UINT64_C(0xBF58476D1CE4E5B9) ^ low >> 32;
}

static uint64_t hash_of(struct page_span name, uint64_t seed)
{
    uint64_t hash = stirred(seed ^ name.size, UINT64_C(0x9E3779B97F4A7C15));
    for (size_t at = 0; at < name.size; at++)
        hash = stirred(hash ^ lower(name.data[at]), seed);
    return hash;
}

static bool same_name(struct page_span one, struct page_span other)
{
    if (one.size != other.size)
        return false;
    for (size_t at = 0; at < one.size; at++)
        if (lower(one.data[at]) != lower(other.data[at]))
            return false;
    return true;
}

static struct name *place_of(const struct names *names, struct page_span text, uint64_t hash)
{
    size_t at = (size_t)hash & names->mask;
    while (names->table[at].text.data && (names->table[at].hash != hash || !same_name(names->table[at].text, text)))
        at = (at + 1) & names->mask;
    return &names->table[at];
}

#define LEAST_NAMES 1024

static bool grow(struct names *names)
{
    struct names more = *names;
    size_t places = names->table ? 2 * (names->mask + 1) : LEAST_NAMES;
    more.table = calloc(places, sizeof *more.table);
    if (!more.table)
        return false;
    more.mask = places - 1;
    for (size_t at = 0; names->table && at <= names->mask; at++)
        if (names->table[at].text.data)
            *place_of(&more, names->table[at].text, names->table[at].hash) = names->table[at];
    free(names->table);
    *names = more;
    return true;
}

static bool is_listed(struct page_span text, const char *const *list, size_t count)
{
    for (size_t place = 0; place < count; place++)
        if (strlen(list[place]) == text.size && same_name(text, (struct page_span){(const unsigned char *)list[place], text.size}))
            return true;
    return false;
}

static struct name *named(struct names *names, struct page_span text)
{
    if ((!names->table || 2 * names->count > names->mask) && !grow(names))
        return NULL;
    uint64_t hash = hash_of(text, names->seed);
    struct name *name = place_of(names, text, hash);
    if (!name->text.data) {
        *name = (struct name){.text = text,
                              .hash = hash,
                              .formatting = is_listed(text, FORMATTING, FORMATTING_COUNT),
                              .no_depth = is_listed(text, NO_DEPTH, NO_DEPTH_COUNT)};
        names->count++;
    }
    return name;
}

/* The most elements and formatting elements that are open at once; false without the memory. _deepest(_TAG...). */
static bool deepest(const unsigned char *text, size_t size, size_t *most, size_t *most_formatting)
{
    /* Names are the page's choice: where memory happens to lie decides which of them share a place. */
    struct names names = {.seed = (uint64_t)(uintptr_t)text ^ (uint64_t)(uintptr_t)&names};
    size_t at = 0, depth = 0, formatting = 0;
    *most = *most_formatting = 0;
    while (at < size) {
        const unsigned char *sign = memchr(text + at, '<', size - at);
        if (!sign)
            break;
        at = (size_t)(sign - text) + 1;
        bool closes = at < size && text[at] == '/';
        size_t start = at + closes;
        if (start >= size || !is_letter(text[start]))
            continue;
        struct page_span found = {text + start, name_size(text, start, size)};
        at = start + found.size;
        struct name *name = named(&names, found);
        if (!name) {
            free(names.table);
            return false;
        }
        if (closes && name->open) {
            name->open--;
            depth--;
            formatting -= name->formatting;
        } else if (!closes && !name->no_depth) {
            name->open++;
            depth++;
            formatting += name->formatting;
            *most = depth > *most ? depth : *most;
            *most_formatting = formatting > *most_formatting ? formatting : *most_formatting;
        }
    }
    free(names.table);
    return true;
}

/* --- the decision ----------------------------------------------------------------------------------------------- */

int page_weight(const unsigned char *source, size_t size)
{
    struct shape shape = {0};
    size_t depth, formatting;
    if (has_crowded_tag(source, size))
        return BOMB;
    measure(source, size, &shape);
    if (shape.tags <= FEW_TAGS)
        return LIGHT;
    if (shape.options > MAX_OPTIONS)
        return BOMB;
    uint64_t repeats = (uint64_t)shape.formatting * shape.tags;
    bool light = shape.tags <= LIGHT_TAGS && shape.options <= LIGHT_OPTIONS;
    if (light && repeats <= LIGHT_REPEATS)
        return LIGHT;
    if (shape.tags <= SHALLOW_TAGS)
        return repeats > MAX_REPEATS ? BOMB : HEAVY;
    if (!deepest(source, size, &depth, &formatting))
        return PAGE_WEIGHT_UNKNOWN;
    return (uint64_t)depth * shape.tags > MAX_STEPS || (uint64_t)formatting * shape.tags > MAX_REPEATS ? BOMB : HEAVY;
}
