/*
 * What several files need of lexbor's tree: the order of its nodes, texts and blanks.
 */
#ifndef CRAWLER_NODES_H
#define CRAWLER_NODES_H

#include "page.h"

#include "lexbor/dom/interfaces/attr.h"
#include "lexbor/dom/interfaces/document.h"
#include "lexbor/dom/interfaces/element.h"
#include "lexbor/dom/interfaces/text.h"
#include "lexbor/html/html.h"

typedef lxb_dom_node_t node_t;

#define SPAN(text) {(const unsigned char *)(text), sizeof(text) - 1}
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Of ASCII's, those that Python's str.strip takes off. */
static inline bool is_ascii_blank(unsigned char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= 0x1C && byte <= 0x1F);
}

/* The node behind ``node`` and all below it, in the order of the document, below ``root``; NULL at the end. */
static inline node_t *node_past(const node_t *root, node_t *node)
{
    while (node != root && !node->next)
        node = node->parent;
    return node == root ? NULL : node->next;
}

/* The same, with what is below ``node``. */
static inline node_t *node_following(const node_t *root, node_t *node)
{
    return node->first_child ? node->first_child : node_past(root, node);
}

/* rules/page/tree.py: UNSEEN_TAGS. */
static inline bool is_unseen(const node_t *node)
{
    switch (node->local_name) {
    case LXB_TAG_SCRIPT:
    case LXB_TAG_STYLE:
    case LXB_TAG_NOSCRIPT:
    case LXB_TAG_TEMPLATE:
    case LXB_TAG_SVG:
        return true;
    default:
        return false;
    }
}

static inline struct page_span text_of(node_t *node)
{
    const lexbor_str_t *text = &lxb_dom_interface_text(node)->char_data.data;
    return (struct page_span){text->data, text->data ? text->length : 0};
}

/* Blanks of HTML only, as selectolax's skip_empty. */
static inline bool is_empty(struct page_span text)
{
    for (size_t at = 0; at < text.size; at++)
        switch (text.data[at]) {
        case ' ':
        case '\t':
        case '\n':
        case '\f':
        case '\r':
            break;
        default:
            return false;
        }
    return true;
}

/* Title of the head: an svg has titles of its own. False without the memory. */
bool page_title(struct page *page, node_t *head);

#endif
