/*
 * What a search index gets of a page: rules/page/extract.py in one walk over lexbor's tree. There the frame is taken out
 * of the tree, then the elements within lines are replaced by what is in them; here the walk passes over the one and
 * through the other, so that the tree stays as it is.
 */
#include "attributes.h"

#include <stdlib.h>

enum gap { GAP_NONE, GAP_BLANK, GAP_LINE };

struct text {
    struct page_buffer *out;
    enum gap gap; /* before the next letter */
};

/* Bytes that a blank may begin with (blank_size). */
static const unsigned char MAY_BE_BLANK[256] = {
    ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,  [0x1C] = 1, [0x1D] = 1,
    [0x1E] = 1, [0x1F] = 1, [' '] = 1,  [0xC2] = 1, [0xE1] = 1, [0xE2] = 1, [0xE3] = 1,
};

/* Adds a text with one blank for each run of them, and without empty lines. */
static bool add_text(struct text *text, struct page_span more)
{
    size_t at = 0, size;
    if (!page_buffer_room(text->out, more.size + 1)) /* what is added is not longer, but for a gap before it */
        return false;
    unsigned char *out = text->out->data, *end = out + text->out->size;
    while (at < more.size) {
        if (MAY_BE_BLANK[more.data[at]] && (size = blank_size(more.data + at, more.size - at))) {
            enum gap gap = more.data[at] == '\n' ? GAP_LINE : GAP_BLANK;
            text->gap = gap > text->gap ? gap : text->gap;
            at += size;
            continue;
        }
        if (text->gap != GAP_NONE && end > out)
            *end++ = text->gap == GAP_LINE ? '\n' : ' ';
        text->gap = GAP_NONE;
        do
            *end++ = more.data[at++];
        while (at < more.size && !MAY_BE_BLANK[more.data[at]]);
    }
    text->out->size = (size_t)(end - out);
    return true;
}

/* Words of a text that add_text has made: other blanks than these are gone. */
static size_t count_words(struct page_buffer *text)
{
    size_t gaps = 0;
    if (words_has_cjk(text->data, text->size))
        return words_count(text, true);
    for (size_t at = 0; at < text->size; at++)
        gaps += text->data[at] == ' ' || text->data[at] == '\n';
    return gaps + (text->size > 0);
}

/* --- text ------------------------------------------------------------------------------------------------------- */

/* rules/page/extract.py: _FRAME, with what is never seen. */
static bool is_left_out(const node_t *node)
{
    switch (node->local_name) {
    case LXB_TAG_NAV:
    case LXB_TAG_FOOTER:
    case LXB_TAG_ASIDE:
    case LXB_TAG_FORM:
    case LXB_TAG_BUTTON:
    case LXB_TAG_SELECT:
    case LXB_TAG_IFRAME:
    case LXB_TAG_OBJECT:
        return true;
    default:
        return is_unseen(node);
    }
}

/* rules/page/extract.py: _INLINE. */
static const lxb_tag_id_t INLINE[] = {
    LXB_TAG_A,    LXB_TAG_ABBR, LXB_TAG_ACRONYM, LXB_TAG_B,   LXB_TAG_BDI, LXB_TAG_BDO,   LXB_TAG_BIG,    LXB_TAG_CITE,
    LXB_TAG_CODE, LXB_TAG_DATA, LXB_TAG_DEL,     LXB_TAG_DFN, LXB_TAG_EM,  LXB_TAG_FONT,  LXB_TAG_I,      LXB_TAG_INS,
    LXB_TAG_KBD,  LXB_TAG_LABEL, LXB_TAG_MARK,   LXB_TAG_Q,   LXB_TAG_S,   LXB_TAG_SAMP,  LXB_TAG_SMALL,  LXB_TAG_SPAN,
    LXB_TAG_STRIKE, LXB_TAG_STRONG, LXB_TAG_SUB, LXB_TAG_SUP, LXB_TAG_TIME, LXB_TAG_TT,   LXB_TAG_U,      LXB_TAG_VAR,
    LXB_TAG_WBR,
};

/* Whether the node is replaced by what is in it: one with nothing that stays is not, and ends a line. */
static bool is_within_line(const node_t *node)
{
    size_t place = 0;
    while (place < COUNT(INLINE) && INLINE[place] != node->local_name)
        place++;
    if (place == COUNT(INLINE))
        return false;
    for (const node_t *child = node->first_child; child; child = child->next)
        if (!is_left_out(child))
            return true;
    return false;
}

static bool meet_text(struct text *text, node_t *node)
{
    if (node->local_name == LXB_TAG__TEXT)
        return add_text(text, text_of(node));
    if (!is_within_line(node))
        text->gap = GAP_LINE;
    return true;
}

static bool read_text(struct page *page, node_t *body)
{
    struct text text = {.out = &page->text};
    node_t *node = body->first_child;
    while (node) {
        bool left_out = is_left_out(node);
        if (!left_out && !meet_text(&text, node))
            return false;
        if (!left_out && node->first_child) {
            node = node->first_child;
            continue;
        }
        while (node != body && !node->next) {
            node = node->parent;
            if (node != body && !is_within_line(node))
                text.gap = GAP_LINE;
        }
        node = node == body ? NULL : node->next;
    }
    return true;
}

/* A body that a frameset has replaced: nothing is taken out of it, and each text is a line. */
static bool read_lost_text(struct page *page, node_t *body)
{
    struct text text = {.out = &page->text};
    for (node_t *node = body; (node = node_following(body, node));) {
        text.gap = GAP_LINE;
        if (node->local_name == LXB_TAG__TEXT && !add_text(&text, text_of(node)))
            return false;
    }
    return true;
}

/* --- links ------------------------------------------------------------------------------------------------------ */

/* Leaves the first ``most`` characters from ``start`` on. */
static void cut(struct page_buffer *text, size_t start, size_t most)
{
    size_t at = start;
    for (; at < text->size; at++)
        if ((text->data[at] & 0xC0) != 0x80 && !most--)
            break;
    text->size = at;
}

/* The words of a link, behind those of the others; what was read for them is taken off ``left``. */
static bool read_words(struct page_buffer *words, node_t *node, size_t *left)
{
    struct page_buffer own = {0};
    struct text text = {.out = &own};
    bool right = true;
    size_t read = 0;
    for (node_t *inner = node; *left && right && (inner = node_following(node, inner));) {
        if (inner->local_name != LXB_TAG__TEXT)
            continue;
        struct page_span more = text_of(inner);
        read += words_characters(more.data, more.size);
        if (own.size <= 4 * PAGE_MOST_ANCHOR) /* bytes: what is behind is not kept */
            right = add_text(&text, more);
    }
    for (size_t at = 0; at < own.size; at++)
        if (own.data[at] == '\n')
            own.data[at] = ' ';
    cut(&own, 0, PAGE_MOST_ANCHOR);
    *left -= read < *left ? read : *left;
    right = right && page_buffer_add(words, own.data, own.size);
    free(own.data);
    return right;
}

static bool add_link(struct page *page, const struct link *link, size_t start, bool element_is_link)
{
    if (page->link_count == page->link_capacity) {
        size_t more = page->link_capacity ? 2 * page->link_capacity : 64;
        struct page_link *room = realloc(page->links, more * sizeof *room); /* PAGE_MOST_LINKS bounds it */
        if (!room)
            return false;
        page->links = room;
        page->link_capacity = more;
    }
    page->links[page->link_count++] = (struct page_link){
        link->target, link->rel_text, start, page->frame.size - start, element_is_link && link->rel & REL_CANONICAL};
    return true;
}

static bool read_links(struct page *page, node_t *root)
{
    size_t met = 0, left = PAGE_MOST_READ;
    for (node_t *node = root; node && met < PAGE_MOST_LINKS; node = node_following(root, node)) {
        if (!is_link(node))
            continue;
        met++;
        struct link link = link_of(node);
        if (!link.followed)
            continue;
        size_t start = page->frame.size;
        if (!read_words(&page->frame, node, &left) ||
            !add_link(page, &link, start, node->local_name == LXB_TAG_LINK))
            return false;
    }
    return true;
}

/* --- the rest --------------------------------------------------------------------------------------------------- */

static const struct page_span LANG = SPAN("lang"), CONTENT = SPAN("content"), NAME = SPAN("name"),
                              PROPERTY = SPAN("property"), JSON_LD[] = {SPAN("application/ld+json")},
                              ITEMS[] = {SPAN("itemscope"), SPAN("itemprop")};

static bool has_colon(struct page_span text)
{
    for (size_t at = 0; at < text.size; at++)
        if (text.data[at] == ':')
            return true;
    return false;
}

/* Whether there may be something for structured_data() to find: never false where there is. */
static bool may_have_data(node_t *root, node_t *node)
{
    for (size_t place = 0; place < COUNT(ITEMS); place++)
        if (lxb_dom_attr_data_by_local_name(root->owner_document->attrs, ITEMS[place].data, ITEMS[place].size))
            return true;
    for (; node; node = node_following(root, node)) {
        if (node->local_name == LXB_TAG_SCRIPT &&
            is_one_of(value(node, LXB_DOM_ATTR_TYPE, TYPE), JSON_LD, COUNT(JSON_LD)))
            return true;
        if (node->local_name == LXB_TAG_META && has(node, LXB_DOM_ATTR_CONTENT) &&
            (has_colon(value_written(node, PROPERTY)) || has_colon(value_written(node, NAME))))
            return true;
    }
    return false;
}

static void read_base(struct page *page, node_t *root)
{
    for (node_t *node = root; node; node = node_following(root, node))
        if (node->local_name == LXB_TAG_BASE && has(node, LXB_DOM_ATTR_HREF)) {
            page->base = value(node, LXB_DOM_ATTR_HREF, HREF);
            return;
        }
}

enum page_status extract_tree(struct page *page)
{
    lxb_html_document_t *document = page->tree;
    node_t *root = lxb_dom_document_root(lxb_dom_interface_document(document));
    node_t *body = lxb_dom_interface_node(document->body), *above = body;
    if (!root)
        return PAGE_FAILED;
    while (above && above != root)
        above = above->parent;
    if (body && !(above ? read_text(page, body) : read_lost_text(page, body)))
        return PAGE_NO_MEMORY;
    if (!read_links(page, root) || !page_title(page, lxb_dom_interface_node(document->head)))
        return PAGE_NO_MEMORY;
    read_base(page, root);
    page->language = value(root, LXB_DOM_ATTR_LANG, LANG);
    page->may_have_data = may_have_data(root, root);
    page->words = count_words(&page->text);
    return PAGE_OK;
}
