/*
 * What a page says, read in one walk over the tree that lexbor makes of it.
 *
 * The Python reader (rules/page/tree.py) is the specification: for the same source both give the same
 * (tests/native/test_oracle.py), so that only the price of a page depends on which is in use.
 *
 *   page.c     the walk: links, metas, base, canonical, title, text
 *   extract.c  what a search index gets: lines of text, links with their words
 *   attributes.c  attributes of elements, and which are links
 *   shell.c    what a page without its scripts shows, for rules/rendering/thin_pages.py
 *   nodes.h    lexbor's tree, for these
 *   words.c    texts: buffers, words, their hashes, SimHash
 *   memory.c   what lexbor gets, and the way out where there is none
 *   weight.c   pages that are built to choke a parser
 *   nearest.c  fingerprints that are near one, among many
 *   automaton.c  features of a language model in a text
 *   record.c, inflate.c, deflate.c, checksums.c  records of a WARC file
 *   module.c   the binding; with links.c, head.c and member.c (records) all that knows Python
 *
 * In: the bytes of a page in UTF-8 and their number. They are not changed and must live until page_free().
 * Out: numbers, and spans of bytes that belong to the page. page_free() frees all of it, also after an error.
 *
 * Bounds: nothing recurses, so that no depth of nesting is too deep; memory is a constant plus a multiple of the
 * source's size; time is linear in it but for what lexbor itself does, which page_weight() judges beforehand.
 * Sizes are checked before they are added or multiplied. No memory is an answer (PAGE_NO_MEMORY), not an abort.
 */
#ifndef CRAWLER_PAGE_H
#define CRAWLER_PAGE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in rules/page/page.py and rules/page/text_fingerprint.py; a test compares them. */
#define PAGE_MIN_WORDS 50        /* shorter texts have no fingerprint */
#define PAGE_MAX_WORDS 10000     /* the first so many words make the fingerprint */
#define PAGE_ENOUGH_WORDS 200    /* a page with so many words */
#define PAGE_ENOUGH_LINKS 3      /* and so many links is whole without its scripts */
#define PAGE_MOST_ELEMENTS 20    /* noscript elements and application roots that are looked at */
#define PAGE_MOST_NOTICE 20000   /* characters in which a request to enable JavaScript is looked for */
#define PAGE_EMPTY_ROOT_WORDS 20 /* an application's root with fewer is empty */

/* As in rules/page/extract.py. */
#define PAGE_MOST_LINKS 10000
#define PAGE_MOST_ANCHOR 200                  /* characters of a link's words */
#define PAGE_MOST_READ (4 * 1024 * 1024)      /* characters that are read for the words of links */

enum page_status {
    PAGE_OK,
    PAGE_NO_MEMORY,
    PAGE_NOT_UTF8, /* the source, or what was made of it, is not UTF-8: Python reads it, and replaces what is wrong */
    PAGE_FAILED,   /* lexbor refuses it, which it does for no page known */
};

/* Bytes of UTF-8. ``data`` is NULL where there is nothing, which is not the same as an empty text. */
struct page_span {
    const unsigned char *data;
    size_t size;
};

/* Bytes that grow. Eight more than ``size`` may be read. */
struct page_buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
};

enum page_target_kind {
    PAGE_NOFOLLOW = 1, /* its rel says so */
    PAGE_ANCHOR = 2,   /* the href of an a or area */
    PAGE_REFRESH = 4,  /* not an address: the content of a meta refresh, which names one or not */
};

/* What a link asks to be followed, as written. */
struct page_target {
    struct page_span address;
    unsigned kind;
};

struct page_meta {
    struct page_span name;
    struct page_span content;
};

enum page_shell_state {
    PAGE_WHOLE,   /* says enough, or has no script: nothing of ``shell`` is filled in */
    PAGE_SHELL,   /* has scripts, and few words or few links */
    PAGE_UNCLEAR, /* the same, but some address needs Python's urlsplit to count the links */
};

/* A link for a search index. */
struct page_link {
    struct page_span target;
    struct page_span rel;
    size_t words; /* where its words begin in page->frame, and their bytes */
    size_t words_size;
    bool is_canonical;
};

/* What is looked at to decide whether a browser is needed. Characters are code points. */
struct page_shell {
    enum page_shell_state state;
    size_t links; /* different ones, counted up to PAGE_ENOUGH_LINKS */
    size_t script_characters;
    size_t shown_characters;
    struct page_buffer shown;  /* their beginning; empty with PAGE_ENOUGH_WORDS words */
    struct page_buffer notice; /* of noscript elements, the beginning */
    bool empty_root;
};

struct page {
    void *tree; /* lexbor's, which the spans point into */
    struct page_target *targets;
    size_t target_count;
    size_t target_capacity;
    struct page_meta *metas;
    size_t meta_count;
    size_t meta_capacity;
    struct page_span base;      /* the first base's href */
    struct page_span canonical; /* the first rel=canonical */
    struct page_buffer title;   /* as written: blanks as they are */
    struct page_buffer text;    /* visible, without links and frame */
    struct page_buffer frame;   /* the visible rest */
    size_t words;               /* of both */
    bool has_fingerprint;
    uint64_t fingerprint; /* SimHash of ``text`` */
    size_t script_count;  /* elements that are executed */
    size_t script_characters;
    struct page_shell shell;
    /* Of page_extract() only, which fills in base, title, text (lines), frame (words of links) and words besides. */
    struct page_link *links;
    size_t link_count;
    size_t link_capacity;
    struct page_span language; /* of the root element */
    bool may_have_data;        /* JSON-LD, OpenGraph or microdata */
};

/* Reads ``size`` bytes into a page of which nothing needs to be set. page_free() it whatever the answer. */
enum page_status page_read(struct page *page, const unsigned char *source, size_t size);
enum page_status page_extract(struct page *page, const unsigned char *source, size_t size);
void page_free(struct page *page);

/* 0, 1 or 2 as Weight in rules/page/body.py; PAGE_WEIGHT_UNKNOWN without the memory to tell. */
#define PAGE_WEIGHT_UNKNOWN (-1)
int page_weight(const unsigned char *source, size_t size);

/* The first place from ``from`` on whose value (of eight bytes, as the machine has them) differs from ``wanted`` in at
 * most ``bits`` bits; ``count`` if there is none. And in how many bits the value at a place differs. */
size_t nearest_next(const unsigned char *values, size_t count, uint64_t wanted, int bits, size_t from);
int nearest_bits(const unsigned char *values, size_t place, uint64_t wanted);

/* A language model: behind a state and a byte comes the state steps[states[state].row * 256 + byte]. */
struct automaton_state {
    uint32_t row;
    int32_t feature; /* that is met there; less than 0: without one */
};

struct automaton {
    const uint32_t *steps;
    size_t step_count;
    const struct automaton_state *states;
    size_t state_count;
    size_t feature_count;
};

struct automaton_feature {
    int64_t feature;
    int64_t times;
};

/* The features that ``size`` bytes reach, in the order of their first times. ``places`` has feature_count zeros, before
 * and after; ``found`` room for as many as there are bytes or features. False for a model with wrong numbers. */
bool automaton_walk(const struct automaton *model, const unsigned char *text, size_t size, uint32_t *places,
                    struct automaton_feature *found, size_t *count);

/* Adds to each class what the features say for it: a row of the table, by the logarithm of how often and once more. */
void automaton_sum(const float *table, size_t classes, const struct automaton_feature *found, size_t count,
                   float *sums);

/* A WARC record whose head is plain: its fields in order, names in lower case, and its block. False: Python judges it.
 * The fields lie in ``head``, which has room for so many bytes, the block in ``data``. */
enum { RECORD_FIELDS = 64, RECORD_HEAD = 8192 };
struct record_field {
    struct page_span name, value;
};
struct record {
    struct record_field fields[RECORD_FIELDS];
    size_t count;
    size_t head_size;
    struct page_span block;
};
bool record_read(const unsigned char *data, size_t size, unsigned char *head, size_t room, struct record *record);

/* Inflates the gzip member that ``in`` begins with into ``out``, which grows up to ``most`` bytes. False where it does
 * not end within ``size`` bytes, and of all that is not plain: Python judges it. Not for two threads at once. */
bool inflate_member(const unsigned char *in, size_t size, struct page_buffer *out, size_t most, size_t *used);

/* The gzip member of a short text, and how long it is; 0 where it is too long, or not of ASCII alone. */
enum { DEFLATE_MOST = 4096, DEFLATE_ROOM = 2 * DEFLATE_MOST, DEFLATE_HEAD_BITS = 452 };
/* With which the one block of each begins: its code. */
extern const unsigned char deflate_head[];
size_t deflate_member(const unsigned char *in, size_t size, unsigned char out[DEFLATE_ROOM]);

uint32_t checksum_crc32(const unsigned char *data, size_t size);
/* Of one text or two. False where the processor has no instructions for it: the digests are to come from elsewhere. */
bool checksum_sha1(const struct page_span *texts, size_t count, unsigned char digests[][20]);

/* --- between these files ------------------------------------------------------------------------------------- */

/* Room for so many bytes more; false without the memory. */
bool page_buffer_room(struct page_buffer *buffer, size_t size);
bool page_buffer_add(struct page_buffer *buffer, const unsigned char *data, size_t size);
/* Adds a text after a blank, or without one if it is the first (``count`` texts are in). */
bool page_buffer_join(struct page_buffer *buffer, size_t count, const unsigned char *data, size_t size);

bool words_is_utf8(const unsigned char *text, size_t size);
/* A text without digits and blanks of ASCII, and how long it is; ``out`` has room for all of it and this more. */
enum { WORDS_SAID_ROOM = 8 };
size_t words_said(const unsigned char *text, size_t size, unsigned char *out);
size_t words_characters(const unsigned char *text, size_t size);
/* Whether CJK has to be looked for, in which every character is a word (UTF-8 only). */
bool words_has_cjk(const unsigned char *text, size_t size);
/* Words of a text; what lies behind its end is written over. */
size_t words_count(struct page_buffer *text, bool cjk);
/* The same, with CJK if there is any, and the text's SimHash; ``*has`` is false if it is too short for one. */
enum page_status words_read(struct page_buffer *text, size_t *count, bool *has, uint64_t *fingerprint);

/* From now on lexbor's allocations jump to ``out`` if they fail; NULL: they return NULL. */
void memory_lend(jmp_buf *out);
/* Frees all that lexbor has, the parser that was kept too: nothing of it may be used again. */
void memory_free_all(void);

enum page_status extract_tree(struct page *page);
/* Fills in ``page->shell``, after the walk. */
enum page_status shell_read(struct page *page);

#endif
