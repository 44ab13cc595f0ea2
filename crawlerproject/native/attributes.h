/*
 * Attributes of lexbor's elements, for page.c and extract.c.
 */
#ifndef CRAWLER_ATTRIBUTES_H
#define CRAWLER_ATTRIBUTES_H

#include "nodes.h"

enum rel_word {
    REL_CANONICAL = 1,
    REL_OTHER = 2, /* next, prev */
    REL_ALTERNATE = 4,
    REL_STYLESHEET = 8,
    REL_NOFOLLOW = 16,
};

static const struct page_span HREF = SPAN("href"), XLINK_HREF = SPAN("xlink:href"), SRC = SPAN("src"),
                              REL = SPAN("rel"), TYPE = SPAN("type");

/* What an element asks to be followed, as written. */
struct link {
    struct page_span target;
    struct page_span rel_text;
    unsigned rel; /* enum rel_word */
    bool followed;
};

/* Without case; ``word`` is in lower case. */
bool same_word(struct page_span text, struct page_span word);
bool is_one_of(struct page_span text, const struct page_span *words, size_t count);
/* The bytes of the blank at ``at``, of which ``left`` are there; 0 if it is none. As str.isspace, in UTF-8. */
size_t blank_size(const unsigned char *at, size_t left);
struct page_span stripped(struct page_span text);
/* As text.partition(";")[0].strip(). */
struct page_span media_type(struct page_span text);
unsigned rel_words(struct page_span rel);

bool has(node_t *node, lxb_dom_attr_id_t id);
/* The value of the attribute that is written ``name``, whose id is ``id``; the last one if there are several. */
struct page_span value(node_t *node, lxb_dom_attr_id_t id, struct page_span name);
/* The same for an attribute that lexbor knows no number for. */
struct page_span value_written(node_t *node, struct page_span name);

/* Whether it is an a, area, link, iframe or frame with the attribute that would name an address. */
bool is_link(node_t *node);
struct link link_of(node_t *node);

#endif
