/*
 * What a page shows without its scripts, for rules/rendering/thin_pages.py: a second walk, over the few pages that have
 * scripts and say or link little.
 */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

/* rules/page/tree.py: ROOTS. */
static const struct page_span ROOT_IDS[] = {
    SPAN("root"),       SPAN("app"),      SPAN("__next"), SPAN("__nuxt"),
    SPAN("___gatsby"),  SPAN("svelte"),   SPAN("app-root"), SPAN("react-root"),
    SPAN("q-app"),      SPAN("main-app"), SPAN("application"), SPAN("elm"),
    SPAN("ember-app"),  SPAN("single-spa-application"),
};
static const struct page_span ROOT_TAGS[] = {SPAN("app-root"), SPAN("flt-glass-pane"), SPAN("my-app")};
static const struct page_span ROOT_ATTRIBUTES[] = {SPAN("ng-app"), SPAN("ng-version"), SPAN("data-v-app"),
                                                   SPAN("data-reactroot")};

/* --- links ------------------------------------------------------------------------------------------------------ */

enum crawlable { NO, YES, UNCLEAR };

static bool is_letter(unsigned char byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool is_of_scheme(unsigned char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.';
}

static bool is_http(struct page_span scheme)
{
    static const char https[] = "https";
    if (scheme.size != 4 && scheme.size != 5)
        return false;
    for (size_t at = 0; at < scheme.size; at++)
        if ((scheme.data[at] | 0x20) != https[at])
            return false;
    return true;
}

/* Cuts an address as rules/page/tree.py's _crawlable, and judges it if that takes no more than ASCII. */
static enum crawlable crawlable(struct page_span *address)
{
    const unsigned char *data = address->data;
    size_t size = address->size, colon;
    for (; size && is_ascii_blank(data[0]); data++, size--)
        ;
    for (; size && is_ascii_blank(data[size - 1]); size--)
        ;
    for (size_t at = 0; at < size; at++)
        if (data[at] >= 0x7F || data[at] <= ' ' || data[at] == '[' || data[at] == ']')
            return UNCLEAR;
    const unsigned char *fragment = memchr(data, '#', size);
    if (fragment)
        size = (size_t)(fragment - data);
    *address = (struct page_span){data, size};
    if (!size)
        return NO;
    for (colon = 0; colon < size && is_of_scheme(data[colon]); colon++)
        ;
    if (colon == size || data[colon] != ':' || !colon)
        return YES;
    /* Pythons differ on a scheme that begins with a digit. */
    return !is_letter(data[0]) ? UNCLEAR : is_http((struct page_span){data, colon}) ? YES : NO;
}

static bool is_among(struct page_span address, const struct page_span *others, size_t count)
{
    for (size_t place = 0; place < count; place++)
        if (others[place].size == address.size && !memcmp(others[place].data, address.data, address.size))
            return true;
    return false;
}

/* Counts different addresses up to PAGE_ENOUGH_LINKS; whether that is certain. */
static bool count_links(const struct page *page, size_t *count)
{
    struct page_span found[PAGE_ENOUGH_LINKS];
    bool unclear = false;
    *count = 0;
    for (size_t place = 0; place < page->target_count && *count < PAGE_ENOUGH_LINKS; place++) {
        struct page_span address = page->targets[place].address;
        if (!(page->targets[place].kind & PAGE_ANCHOR))
            continue;
        enum crawlable is = crawlable(&address);
        unclear |= is == UNCLEAR;
        if (is == YES && !is_among(address, found, *count))
            found[(*count)++] = address;
    }
    return *count == PAGE_ENOUGH_LINKS || !unclear;
}

/* --- texts ------------------------------------------------------------------------------------------------------ */

/* The node behind ``node`` that is shown. */
static node_t *shown_after(const node_t *root, node_t *node)
{
    node = node_following(root, node);
    while (node && is_unseen(node))
        node = node_past(root, node);
    return node;
}

static bool has_text(const node_t *node)
{
    return node->local_name == LXB_TAG__TEXT && lxb_dom_interface_text(node)->char_data.data.data;
}

/* Leaves the first ``most`` characters. */
static void cut(struct page_buffer *text, size_t most)
{
    size_t at = 0;
    for (; at < text->size; at++)
        if ((text->data[at] & 0xC0) != 0x80 && !most--)
            break;
    text->size = at;
}

static bool read_notice(struct page *page, node_t *root)
{
    struct page_buffer *notice = &page->shell.notice;
    size_t elements = 0, texts, characters = 0;
    for (node_t *node = root; node; node = node_following(root, node)) {
        if (node->local_name != LXB_TAG_NOSCRIPT)
            continue;
        if (elements == PAGE_MOST_ELEMENTS || characters > PAGE_MOST_NOTICE)
            break;
        if (elements++ && !page_buffer_add(notice, (const unsigned char *)" ", 1))
            return false;
        texts = 0;
        for (node_t *inner = node; (inner = node_following(node, inner)) && characters <= PAGE_MOST_NOTICE;)
            if (has_text(inner)) {
                struct page_span text = text_of(inner);
                characters += words_characters(text.data, text.size);
                if (!page_buffer_join(notice, texts++, text.data, text.size))
                    return false;
            }
    }
    cut(notice, PAGE_MOST_NOTICE);
    return true;
}

static bool read_shown(struct page *page, node_t *body, bool lost)
{
    struct page_shell *shell = &page->shell;
    bool wanted = page->words < PAGE_ENOUGH_WORDS;
    size_t texts = 0;
    for (node_t *node = body; (node = lost ? node_following(body, node) : shown_after(body, node));) {
        if (!has_text(node))
            continue;
        struct page_span text = text_of(node);
        if (is_empty(text))
            continue;
        if (wanted && shell->shown_characters <= PAGE_MOST_NOTICE &&
            !page_buffer_join(&shell->shown, texts, text.data, text.size))
            return false;
        shell->shown_characters += words_characters(text.data, text.size) + (texts > 0);
        texts++;
    }
    cut(&shell->shown, PAGE_MOST_NOTICE);
    return true;
}

/* --- application roots ------------------------------------------------------------------------------------------ */

static bool same(const lexbor_str_t *text, struct page_span name, bool quirks)
{
    if (text->length != name.size)
        return false;
    return quirks ? lexbor_str_data_ncasecmp(text->data, name.data, name.size)
                  : !memcmp(text->data, name.data, name.size);
}

/* How many parts of rules/page/tree.py's ROOTS the element matches. */
static size_t root_matches(node_t *node)
{
    const lxb_dom_document_t *document = node->owner_document;
    lxb_dom_element_t *element = lxb_dom_interface_element(node);
    size_t matches = 0, size;
    if (node->type != LXB_DOM_NODE_TYPE_ELEMENT)
        return 0;
    if (element->attr_id && element->attr_id->value && element->attr_id->value->data)
        for (size_t place = 0; place < COUNT(ROOT_IDS); place++)
            matches += same(element->attr_id->value, ROOT_IDS[place],
                            document->compat_mode == LXB_DOM_DOCUMENT_CMODE_QUIRKS);
    for (size_t place = 0; place < COUNT(ROOT_ATTRIBUTES); place++) {
        struct page_span name = ROOT_ATTRIBUTES[place];
        const lxb_dom_attr_data_t *data = lxb_dom_attr_data_by_local_name(document->attrs, name.data, name.size);
        matches += data && lxb_dom_element_attr_by_id(element, data->attr_id);
    }
    if (node->local_name >= LXB_TAG__LAST_ENTRY) { /* of no standard */
        const lxb_char_t *tag = lxb_tag_name_by_id(node->local_name, &size);
        for (size_t place = 0; tag && place < COUNT(ROOT_TAGS); place++)
            matches += size == ROOT_TAGS[place].size && !memcmp(tag, ROOT_TAGS[place].data, size);
    }
    return matches;
}

/* Whether so little is shown below ``root``. */
static enum page_status judge_root(node_t *root, bool *empty)
{
    struct page_buffer text = {0};
    size_t texts = 0;
    for (node_t *node = root; (node = shown_after(root, node));)
        if (has_text(node)) {
            struct page_span more = text_of(node);
            if (!page_buffer_join(&text, texts++, more.data, more.size)) {
                free(text.data);
                return PAGE_NO_MEMORY;
            }
        }
    bool cjk = words_has_cjk(text.data, text.size);
    *empty = words_count(&text, cjk) < PAGE_EMPTY_ROOT_WORDS;
    free(text.data);
    return PAGE_OK;
}

static enum page_status read_roots(struct page *page, node_t *root)
{
    size_t matches = 0;
    enum page_status status = PAGE_OK;
    for (node_t *node = root; node && matches < PAGE_MOST_ELEMENTS; node = shown_after(root, node)) {
        size_t more = root_matches(node);
        matches += more;
        if (more)
            status = judge_root(node, &page->shell.empty_root);
        if (status != PAGE_OK || page->shell.empty_root)
            return status;
    }
    return PAGE_OK;
}

static bool is_below(const node_t *node, const node_t *root)
{
    while (node && node != root)
        node = node->parent;
    return node != NULL;
}

enum page_status shell_read(struct page *page)
{
    struct page_shell *shell = &page->shell;
    lxb_html_document_t *document = page->tree;
    node_t *root = lxb_dom_document_root(lxb_dom_interface_document(document));
    node_t *body = lxb_dom_interface_node(document->body);
    if (!page->script_count)
        return PAGE_OK;
    bool certain = count_links(page, &shell->links);
    if (page->words >= PAGE_ENOUGH_WORDS && shell->links >= PAGE_ENOUGH_LINKS)
        return PAGE_OK;
    if (!certain) {
        shell->state = PAGE_UNCLEAR;
        return PAGE_OK;
    }
    shell->state = PAGE_SHELL;
    shell->script_characters = page->script_characters;
    if (!read_notice(page, root) || (body && !read_shown(page, body, !is_below(body, root))))
        return PAGE_NO_MEMORY;
    return read_roots(page, root);
}
