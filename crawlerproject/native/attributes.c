/*
 * Attributes of lexbor's elements, and the links that these are. What is looked for in them is compared in ASCII only:
 * no letter of any other script becomes one of these words' letters in lower case (the Kelvin sign would become a "k",
 * which none of them has). Blanks are those of Python's str.split and str.strip.
 */
#include "attributes.h"

#include <string.h>

/* rules/page/page.py: _NOT_LINKS, _ALTERNATE_TYPES. */
static const struct page_span NOT_LINKS[] = {SPAN("#"), SPAN("javascript:"), SPAN("mailto:"), SPAN("tel:"),
                                             SPAN("data:")};
static const struct page_span ALTERNATE_TYPES[] = {
    SPAN(""),
    SPAN("text/html"),
    SPAN("application/xhtml+xml"),
    SPAN("application/rss+xml"),
    SPAN("application/atom+xml"),
    SPAN("application/feed+json"),
};
static const struct {
    struct page_span word;
    enum rel_word bit;
} REL_WORDS[] = {
    {SPAN("canonical"), REL_CANONICAL},   {SPAN("next"), REL_OTHER},           {SPAN("prev"), REL_OTHER},
    {SPAN("alternate"), REL_ALTERNATE},   {SPAN("stylesheet"), REL_STYLESHEET}, {SPAN("nofollow"), REL_NOFOLLOW},
};

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

bool same_word(struct page_span text, struct page_span word)
{
    if (text.size != word.size)
        return false;
    for (size_t at = 0; at < text.size; at++)
        if (lower(text.data[at]) != word.data[at])
            return false;
    return true;
}

bool is_one_of(struct page_span text, const struct page_span *words, size_t count)
{
    for (size_t place = 0; place < count; place++)
        if (same_word(text, words[place]))
            return true;
    return false;
}

static bool starts_with(struct page_span text, struct page_span start)
{
    return text.size >= start.size && !memcmp(text.data, start.data, start.size);
}

/* The bytes of the blank at ``at``, of which ``left`` are there; 0 if it is none. As str.isspace, in UTF-8. */
size_t blank_size(const unsigned char *at, size_t left)
{
    if (at[0] < 0x80)
        return is_ascii_blank(at[0]);
    if (left >= 2 && at[0] == 0xC2)
        return at[1] == 0x85 || at[1] == 0xA0 ? 2 : 0;
    if (left < 3)
        return 0;
    if (at[0] == 0xE1)
        return at[1] == 0x9A && at[2] == 0x80 ? 3 : 0; /* U+1680 */
    if (at[0] == 0xE3)
        return at[1] == 0x80 && at[2] == 0x80 ? 3 : 0; /* U+3000 */
    if (at[0] != 0xE2)
        return 0;
    if (at[1] == 0x80) /* U+2000 to U+200A, U+2028, U+2029, U+202F */
        return at[2] <= 0x8A || at[2] == 0xA8 || at[2] == 0xA9 || at[2] == 0xAF ? 3 : 0;
    return at[1] == 0x81 && at[2] == 0x9F ? 3 : 0; /* U+205F */
}

struct page_span stripped(struct page_span text)
{
    size_t size;
    while (text.size && (size = blank_size(text.data, text.size))) {
        text.data += size;
        text.size -= size;
    }
    while (text.size) {
        const unsigned char *end = text.data + text.size;
        if (end[-1] < 0x80)
            size = is_ascii_blank(end[-1]);
        else if (text.size >= 2 && blank_size(end - 2, 2) == 2)
            size = 2;
        else
            size = text.size >= 3 && blank_size(end - 3, 3) == 3 ? 3 : 0;
        if (!size)
            break;
        text.size -= size;
    }
    return text;
}

/* As text.partition(";")[0].strip(). */
struct page_span media_type(struct page_span text)
{
    const unsigned char *end = text.size ? memchr(text.data, ';', text.size) : NULL;
    if (end)
        text.size = (size_t)(end - text.data);
    return stripped(text);
}

unsigned rel_words(struct page_span rel)
{
    unsigned found = 0;
    size_t at = 0, size;
    while (at < rel.size) {
        if ((size = blank_size(rel.data + at, rel.size - at))) {
            at += size;
            continue;
        }
        struct page_span word = {rel.data + at, 0};
        while (at + word.size < rel.size && !blank_size(word.data + word.size, rel.size - at - word.size))
            word.size++;
        at += word.size;
        for (size_t place = 0; place < COUNT(REL_WORDS); place++)
            if (same_word(word, REL_WORDS[place].word))
                found |= REL_WORDS[place].bit;
    }
    return found;
}

/* --- attributes ------------------------------------------------------------------------------------------------- */

static lxb_dom_element_t *element_of(node_t *node)
{
    return lxb_dom_interface_element(node);
}

bool has(node_t *node, lxb_dom_attr_id_t id)
{
    return lxb_dom_element_attr_by_id(element_of(node), id) != NULL;
}

static struct page_span value_of(const lxb_dom_attr_t *attr)
{
    if (!attr || !attr->value || !attr->value->data)
        return (struct page_span){NULL, 0};
    return (struct page_span){attr->value->data, attr->value->length};
}

static bool is_written(const lxb_dom_attr_t *attr, struct page_span name)
{
    size_t size = 0;
    const lxb_char_t *written = lxb_dom_attr_qualified_name(attr, &size);
    return written && size == name.size && !memcmp(written, name.data, size);
}

/* The value of the attribute that is written ``name``, whose id is ``id``; the last one if there are several. */
struct page_span value(node_t *node, lxb_dom_attr_id_t id, struct page_span name)
{
    const lxb_dom_attr_t *found = NULL;
    for (const lxb_dom_attr_t *attr = element_of(node)->first_attr; attr; attr = attr->next)
        if (attr->qualified_name ? is_written(attr, name) : attr->node.local_name == id)
            found = attr;
    return value_of(found);
}

/* The same for an attribute that lexbor knows no number for. */
struct page_span value_written(node_t *node, struct page_span name)
{
    const lxb_dom_attr_t *found = NULL;
    for (const lxb_dom_attr_t *attr = element_of(node)->first_attr; attr; attr = attr->next)
        if (is_written(attr, name))
            found = attr;
    return value_of(found);
}

/* --- links ------------------------------------------------------------------------------------------------------ */

static bool is_followed(struct page_span target)
{
    if (!target.size)
        return false;
    for (size_t place = 0; place < COUNT(NOT_LINKS); place++)
        if (starts_with(target, NOT_LINKS[place]))
            return false;
    return true;
}

bool is_link(node_t *node)
{
    switch (node->local_name) {
    case LXB_TAG_A:
    case LXB_TAG_AREA:
    case LXB_TAG_LINK:
        return has(node, LXB_DOM_ATTR_HREF);
    case LXB_TAG_IFRAME:
    case LXB_TAG_FRAME:
        return has(node, LXB_DOM_ATTR_SRC);
    default:
        return false;
    }
}

struct link link_of(node_t *node)
{
    struct link link = {.rel_text = value(node, LXB_DOM_ATTR_REL, REL)};
    if (!is_link(node))
        return link;
    link.rel = rel_words(link.rel_text);
    switch (node->local_name) {
    case LXB_TAG_IFRAME:
    case LXB_TAG_FRAME:
        link.target = value(node, LXB_DOM_ATTR_SRC, SRC);
        break;
    case LXB_TAG_LINK:
        if (!(link.rel & (REL_CANONICAL | REL_OTHER | REL_ALTERNATE)) || link.rel & REL_STYLESHEET)
            return link;
        if (link.rel & REL_ALTERNATE) {
            struct page_span type = media_type(value(node, LXB_DOM_ATTR_TYPE, TYPE));
            if (!is_one_of(type, ALTERNATE_TYPES, COUNT(ALTERNATE_TYPES)))
                return link;
        }
        link.target = value(node, LXB_DOM_ATTR_HREF, HREF);
        break;
    default: /* a, area: in svg, old pages write xlink:href */
        link.target = value(node, LXB_DOM_ATTR_HREF, HREF);
        if (!link.target.size)
            link.target = value_written(node, XLINK_HREF);
    }
    link.followed = is_followed(link.target);
    return link;
}
