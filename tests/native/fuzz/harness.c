/*
 * What the fuzzer calls: a page is weighed and read as the crawler does it, each byte of the answer is touched, and
 * what page.h promises about sizes is checked. One input in four is read once more with an allocation of ours that
 * fails; one in four is read twice and must say the same, since a parser is kept from page to page. Each is read as a
 * WARC record and as a gzip member as well, and some are walked through a language model. scripts/fuzz_native.py
 * builds this with AddressSanitizer and UBSan.
 *
 * Our files are compiled with malloc, calloc and realloc named fuzz_…; what lexbor gets comes from them too (memory.c).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define BOMB 2
/* An entity of five bytes becomes six, and texts are joined by blanks. */
#define MOST_TIMES 4
#define AND_BYTES 64
#define LONGEST_REPEATED 64
#define WALKED 16 /* one input in so many */
#define MODEL_STATES 12
#define MODEL_FEATURES 4
/* A share of the mutations repeats a part so often, and a share of those fills the page with it. */
#define REPEATING 64
#define FILLING 16
#define MOST_REPEATS 512

static size_t allocations, failing_at;

static int fails(void)
{
    return ++allocations == failing_at;
}

void *fuzz_malloc(size_t size)
{
    return fails() ? NULL : malloc(size);
}

void *fuzz_calloc(size_t count, size_t size)
{
    return fails() ? NULL : calloc(count, size);
}

void *fuzz_realloc(void *data, size_t size)
{
    return fails() ? NULL : realloc(data, size);
}

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static uint32_t hashed(uint32_t hash, const unsigned char *data, size_t size)
{
    for (size_t at = 0; at < size; at++)
        hash = (hash ^ data[at]) * 16777619u; /* FNV-1a */
    return hash;
}

#define NOTHING 2166136261u

/* Of all that was read from the page. */
static uint32_t said;

/* Reads every byte: AddressSanitizer knows which are ours. */
static size_t touched(const unsigned char *data, size_t size)
{
    said = hashed(said, data, size) ^ (uint32_t)size;
    return size;
}

static size_t touched_span(struct page_span span)
{
    require(span.data || !span.size, "a span without bytes has no size");
    return touched(span.data, span.size);
}

static void check(const struct page *page, size_t size)
{
    size_t most = MOST_TIMES * size + AND_BYTES, metas = 0;
    /* Each, but not all together: the parser repeats an a that is not closed, in every block behind it. */
    for (size_t place = 0; place < page->target_count; place++)
        require(touched_span(page->targets[place].address) <= most, "a target is no larger than the page");
    for (size_t place = 0; place < page->meta_count; place++)
        metas += touched_span(page->metas[place].name) + touched_span(page->metas[place].content);
    require(metas <= most, "metas are no larger than the page");
    require(touched_span(page->base) <= most && touched_span(page->canonical) <= most, "base and canonical likewise");
    require(touched(page->title.data, page->title.size) <= most, "the title likewise");
    require(touched(page->text.data, page->text.size) <= most, "the text likewise");
    require(touched(page->frame.data, page->frame.size) <= most, "the frame likewise");
    require(touched(page->shell.shown.data, page->shell.shown.size) <= most, "what is shown likewise");
    require(touched(page->shell.notice.data, page->shell.notice.size) <= most + MOST_TIMES * PAGE_MOST_NOTICE, "notice");
    touched((const unsigned char *)&page->words, sizeof page->words);
    touched((const unsigned char *)&page->fingerprint, sizeof page->fingerprint);
    require(page->words <= most, "words have letters");
    require(page->shell.links <= PAGE_ENOUGH_LINKS, "links are counted up to a bound");
}

static void check_extract(const struct page *page, size_t size)
{
    size_t most = MOST_TIMES * size + AND_BYTES;
    require(touched(page->text.data, page->text.size) <= most, "lines are no larger than the page");
    require(page->link_count <= PAGE_MOST_LINKS, "links are bounded");
    require(touched(page->frame.data, page->frame.size) <= page->link_count * 4 * PAGE_MOST_ANCHOR, "their words too");
    for (size_t place = 0; place < page->link_count; place++) {
        const struct page_link *link = &page->links[place];
        require(touched_span(link->target) <= most && touched_span(link->rel) <= most, "a link is no larger");
        require(link->words + link->words_size <= page->frame.size, "words of links are among them");
    }
    require(touched_span(page->language) <= most && touched_span(page->base) <= most, "language and base likewise");
}

static bool is_within(struct page_span span, const unsigned char *data, size_t size)
{
    return span.data >= data && span.size <= size && (size_t)(span.data - data) <= size - span.size;
}

/* As what follows the head of a gzip member. */
static void inflate(const uint8_t *data, size_t size)
{
    static const unsigned char head[10] = {0x1f, 0x8b, 8};
    struct page_buffer inflated = {NULL, 0, 0};
    size_t used = 0, most = size * 4;
    unsigned char *member = malloc(sizeof head + size);
    require(member != NULL, "the harness has memory");
    memcpy(member, head, sizeof head);
    memcpy(member + sizeof head, data, size);
    if (inflate_member(member, sizeof head + size, &inflated, most, &used))
        require(used <= sizeof head + size && inflated.size <= most, "a member is bounded");
    require(inflated.size <= inflated.capacity, "what was inflated has room");
    free(member);
    free(inflated.data);
}

static void read_record(const uint8_t *data, size_t size)
{
    unsigned char head[RECORD_HEAD];
    struct record record;
    if (!record_read(data, size, head, sizeof head, &record))
        return;
    require(record.count <= RECORD_FIELDS && record.head_size <= sizeof head, "a head is bounded");
    for (size_t place = 0; place < record.count; place++) {
        const struct record_field *field = record.fields + place;
        require(is_within(field->name, head, record.head_size), "a name is in the head");
        require(is_within(field->value, head, record.head_size), "a value likewise");
        touched_span(field->name);
        touched_span(field->value);
    }
    require(is_within(record.block, data, size), "the block is in the record");
}

/* A model of random steps forgets nothing, and some of it leads out of its tables; byte by byte it says what is due. */
static void walk_automaton(const uint8_t *data, size_t size, uint32_t chance)
{
    static uint32_t steps[MODEL_STATES * 256], places[MODEL_FEATURES];
    struct automaton_state states[MODEL_STATES];
    struct automaton_feature found[MODEL_FEATURES];
    struct automaton model = {steps, sizeof steps / sizeof *steps, states, MODEL_STATES, MODEL_FEATURES};
    size_t count = 0, times[MODEL_FEATURES] = {0}, state = 0;
    bool right = true;
    for (size_t at = 0; at < model.step_count; at++)
        steps[at] = hashed(chance, (const unsigned char *)&at, sizeof at) % (chance % 3 ? MODEL_STATES : MODEL_STATES + 1);
    for (size_t at = 0; at < MODEL_STATES; at++)
        states[at] = (struct automaton_state){(uint32_t)at, (int32_t)((chance >> at) % (MODEL_FEATURES + 1)) - 1};
    for (size_t at = 0; at < size && right; at++) {
        state = steps[state * 256 + data[at]];
        if ((right = state < MODEL_STATES) && states[state].feature >= 0)
            times[states[state].feature]++;
    }
    require(automaton_walk(&model, data, size, places, found, &count) == right, "a walk ends where the tables do");
    for (size_t place = 0; place < count && right; place++) {
        require(times[found[place].feature] == (size_t)found[place].times, "a feature is met as often as it stands there");
        times[found[place].feature] = 0;
    }
    for (size_t feature = 0; feature < MODEL_FEATURES; feature++)
        require(!places[feature] && (!right || !times[feature]), "each is found, and places are left as they were");
}

static enum page_status read_once(const uint8_t *data, size_t size)
{
    struct page page;
    int weight = page_weight(data, size);
    said = NOTHING;
    require(weight >= PAGE_WEIGHT_UNKNOWN && weight <= BOMB, "a weight is one of four");
    if (weight == BOMB || weight == PAGE_WEIGHT_UNKNOWN)
        return PAGE_OK;
    enum page_status status = page_read(&page, data, size);
    if (status == PAGE_OK)
        check(&page, size);
    page_free(&page);
    enum page_status extracted = page_extract(&page, data, size);
    if (extracted == PAGE_OK)
        check_extract(&page, size);
    page_free(&page);
    return status == PAGE_OK ? extracted : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t chance = hashed(NOTHING, data, size); /* the same input always does the same */
    allocations = failing_at = 0;
    read_record(data, size);
    inflate(data, size);
    if (chance % WALKED == 0)
        walk_automaton(data, size, chance / WALKED);
    require(read_once(data, size) != PAGE_NO_MEMORY, "memory lacks only where there is none");
    if (chance % 4 == 0 && allocations) {
        failing_at = 1 + chance / 4 % allocations;
        allocations = 0;
        read_once(data, size);
    } else if (chance % 4 == 1) {
        uint32_t first = said;
        read_once(data, size);
        require(said == first, "a page says the same whatever was read before it");
    }
    return 0;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Hostile pages repeat something very often, which is far from any small change. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint8_t part[LONGEST_REPEATED];
    if (seed % REPEATING || size < 2)
        return LLVMFuzzerMutate(data, size, max_size);
    srand(seed);
    size_t start = (size_t)rand() % size, length = 1 + (size_t)rand() % LONGEST_REPEATED;
    length = length < size - start ? length : size - start;
    size_t times = rand() % FILLING ? 1 + (size_t)rand() % MOST_REPEATS : max_size;
    memcpy(part, data + start, length);
    for (; times && size + length <= max_size; times--) {
        memcpy(data + size, part, length);
        size += length;
    }
    return size;
}
