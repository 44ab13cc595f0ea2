/*
 * The walk over a page's tree: rules/page/tree.py in one pass.
 */
#include "attributes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64
#define MOST_KEPT_BYTES (256 * 1024) /* of a page whose parser is used again */

struct walk {
    struct page *page;
    const node_t *body;
    const node_t *unseen;  /* the outermost element around here that is not shown */
    const node_t *framing; /* the outermost link or part of the page's frame */
    bool in_body;
    bool body_met;
    size_t open_scripts; /* that are executed */
    size_t texts;        /* in page->text */
    size_t framed;       /* in page->frame */
    bool no_memory;
};

/* --- growing things --------------------------------------------------------------------------------------------- */

/* Room for one more item; NULL without the memory. */
static void *grown(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity)
        return items;
    size_t more = *capacity ? 2 * *capacity : FIRST_CAPACITY;
    if (more > SIZE_MAX / 2 / item_size)
        return NULL;
    void *moved = realloc(items, more * item_size);
    if (moved)
        *capacity = more;
    return moved;
}

static void add_target(struct walk *walk, struct page_span address, unsigned kind)
{
    struct page *page = walk->page;
    void *room = grown(page->targets, page->target_count, &page->target_capacity, sizeof *page->targets);
    if (!room) {
        walk->no_memory = true;
        return;
    }
    page->targets = room;
    page->targets[page->target_count++] = (struct page_target){address, kind};
}

static void add_meta(struct walk *walk, struct page_span name, struct page_span content)
{
    struct page *page = walk->page;
    void *room = grown(page->metas, page->meta_count, &page->meta_capacity, sizeof *page->metas);
    if (!room) {
        walk->no_memory = true;
        return;
    }
    page->metas = room;
    page->metas[page->meta_count++] = (struct page_meta){name, content};
}

/* rules/page/tree.py: EXECUTED. */
static const struct page_span EXECUTED[] = {
    SPAN(""),
    SPAN("module"),
    SPAN("text/javascript"),
    SPAN("application/javascript"),
    SPAN("text/ecmascript"),
    SPAN("application/ecmascript"),
};
static const struct page_span REFRESH[] = {SPAN("refresh")};

static const struct page_span CONTENT = SPAN("content"), NAME = SPAN("name"), HTTP_EQUIV = SPAN("http-equiv");

/* --- elements --------------------------------------------------------------------------------------------------- */

static void meet_link(struct walk *walk, node_t *node)
{
    struct link link = link_of(node);
    if (!link.followed)
        return;
    bool anchor = node->local_name == LXB_TAG_A || node->local_name == LXB_TAG_AREA;
    unsigned kind = anchor && value(node, LXB_DOM_ATTR_HREF, HREF).size ? PAGE_ANCHOR : 0;
    if (link.rel & REL_NOFOLLOW)
        kind |= PAGE_NOFOLLOW;
    add_target(walk, link.target, kind);
    if (node->local_name == LXB_TAG_LINK && link.rel & REL_CANONICAL && !walk->page->canonical.data)
        walk->page->canonical = link.target;
}

static void meet_meta(struct walk *walk, node_t *node)
{
    if (!has(node, LXB_DOM_ATTR_CONTENT))
        return;
    struct page_span content = value(node, LXB_DOM_ATTR_CONTENT, CONTENT);
    struct page_span name = value_written(node, NAME);
    if (name.size)
        add_meta(walk, name, content);
    else if (is_one_of(stripped(value(node, LXB_DOM_ATTR_HTTP_EQUIV, HTTP_EQUIV)), REFRESH, COUNT(REFRESH)))
        add_target(walk, content, PAGE_REFRESH);
}

static void meet_base(struct walk *walk, node_t *node)
{
    struct page_span *base = &walk->page->base;
    if (base->data || !has(node, LXB_DOM_ATTR_HREF))
        return;
    *base = value(node, LXB_DOM_ATTR_HREF, HREF);
    if (!base->data)
        base->data = (const unsigned char *)"";
}

static bool is_executed(node_t *node)
{
    return is_one_of(media_type(value(node, LXB_DOM_ATTR_TYPE, TYPE)), EXECUTED, COUNT(EXECUTED));
}

static void meet_script(struct walk *walk, node_t *node)
{
    if (!is_executed(node))
        return;
    walk->page->script_count++;
    walk->open_scripts++;
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static void meet_text(struct walk *walk, node_t *node)
{
    struct page *page = walk->page;
    struct page_span text = text_of(node);
    if (walk->open_scripts)
        page->script_characters += walk->open_scripts * words_characters(text.data, text.size);
    if (walk->unseen || !walk->in_body || is_empty(text))
        return;
    if (walk->framing)
        walk->no_memory |= !page_buffer_join(&page->frame, walk->framed++, text.data, text.size);
    else
        walk->no_memory |= !page_buffer_join(&page->text, walk->texts++, text.data, text.size);
}

/* --- the walk --------------------------------------------------------------------------------------------------- */

static void hide(struct walk *walk, const node_t *node)
{
    if (!walk->unseen)
        walk->unseen = node;
}

static void frame(struct walk *walk, const node_t *node)
{
    if (!walk->framing)
        walk->framing = node;
}

static void meet(struct walk *walk, node_t *node)
{
    switch (node->local_name) {
    case LXB_TAG__TEXT:
        meet_text(walk, node);
        return;
    case LXB_TAG_A:
        meet_link(walk, node);
        frame(walk, node);
        return;
    case LXB_TAG_AREA:
    case LXB_TAG_IFRAME:
    case LXB_TAG_FRAME:
    case LXB_TAG_LINK:
        meet_link(walk, node);
        return;
    case LXB_TAG_META:
        meet_meta(walk, node);
        return;
    case LXB_TAG_BASE:
        meet_base(walk, node);
        return;
    case LXB_TAG_SCRIPT:
        meet_script(walk, node);
        hide(walk, node);
        return;
    case LXB_TAG_STYLE:
    case LXB_TAG_NOSCRIPT:
    case LXB_TAG_TEMPLATE:
    case LXB_TAG_SVG:
        hide(walk, node);
        return;
    case LXB_TAG_NAV:
    case LXB_TAG_FOOTER:
    case LXB_TAG_ASIDE:
    case LXB_TAG_FORM:
        frame(walk, node);
        return;
    case LXB_TAG_BODY:
        if (node == walk->body)
            walk->in_body = walk->body_met = true;
        return;
    default:
        return;
    }
}

static void leave(struct walk *walk, node_t *node)
{
    if (node == walk->unseen)
        walk->unseen = NULL;
    if (node == walk->framing)
        walk->framing = NULL;
    if (node == walk->body)
        walk->in_body = false;
    if (node->local_name == LXB_TAG_SCRIPT && is_executed(node))
        walk->open_scripts--;
}

/* Meets ``root`` and all below it, and leaves each after what is below it. */
static void go_through(struct walk *walk, node_t *root)
{
    node_t *node = root;
    while (!walk->no_memory) {
        meet(walk, node);
        if (node->first_child) {
            node = node->first_child;
            continue;
        }
        for (;;) {
            leave(walk, node);
            if (node == root)
                return;
            if (node->next) {
                node = node->next;
                break;
            }
            node = node->parent;
        }
    }
}

/* Of the head: an svg has titles of its own. */
bool page_title(struct page *page, node_t *head)
{
    node_t *title = head;
    while (title && title->local_name != LXB_TAG_TITLE)
        title = node_following(head, title);
    for (node_t *node = title; node && (node = node_following(title, node));)
        if (node->local_name == LXB_TAG__TEXT) {
            struct page_span text = text_of(node);
            if (!page_buffer_add(&page->title, text.data, text.size))
                return false;
        }
    return true;
}

/* A body that a frameset has replaced: selectolax still has it, and takes the frame out of nothing but the document. */
static void read_lost_body(struct walk *walk, node_t *body)
{
    for (node_t *node = body; (node = node_following(body, node));)
        if (node->local_name == LXB_TAG__TEXT) {
            struct page_span text = text_of(node);
            if (!is_empty(text))
                walk->no_memory |= !page_buffer_join(&walk->page->text, walk->texts++, text.data, text.size);
        }
}

static enum page_status count_words(struct page *page)
{
    struct page_buffer *text = &page->text, *framed = &page->frame;
    if (!words_is_utf8(text->data, text->size) || !words_is_utf8(framed->data, framed->size))
        return PAGE_NOT_UTF8;
    /* Words are counted with CJK if there is any on the page, and told apart with it if there is any in the text. */
    bool cjk_framed = words_has_cjk(framed->data, framed->size), cjk = words_has_cjk(text->data, text->size);
    enum page_status status = words_read(text, &page->words, &page->has_fingerprint, &page->fingerprint);
    if (cjk_framed && !cjk)
        page->words = words_count(text, true);
    page->words += words_count(framed, cjk || cjk_framed);
    return status;
}

static enum page_status read_tree(struct page *page)
{
    lxb_html_document_t *document = page->tree;
    node_t *root = lxb_dom_document_root(lxb_dom_interface_document(document));
    node_t *head = lxb_dom_interface_node(document->head), *body = lxb_dom_interface_node(document->body);
    struct walk walk = {.page = page, .body = body};
    if (!root)
        return PAGE_FAILED;
    go_through(&walk, root);
    if (body && !walk.body_met)
        read_lost_body(&walk, body);
    if (walk.no_memory || !page_title(page, head))
        return PAGE_NO_MEMORY;
    enum page_status status = count_words(page);
    return status == PAGE_OK ? shell_read(page) : status;
}

/*
 * The parser of the last page that was not large, for the next: its tables are 400 KB, which the system would hand out
 * page by page each time. Lexbor cleans it before each document. One thread reads at a time: Python's, with its lock.
 */
static lxb_html_parser_t *kept;

static lxb_status_t parse(lxb_html_document_t *document, const unsigned char *source, size_t size)
{
    lxb_dom_document_t *tree = lxb_dom_interface_document(document);
    if (size > MOST_KEPT_BYTES)
        return lxb_html_document_parse(document, source, size);
    if (kept)
        tree->parser = lxb_html_parser_ref(kept);
    lxb_status_t status = lxb_html_document_parse(document, source, size);
    if (status != LXB_STATUS_OK)
        kept = lxb_html_parser_unref(kept);
    else if (!kept)
        kept = lxb_html_parser_ref(tree->parser);
    return status;
}

static enum page_status read_page(struct page *page, const unsigned char *source, size_t size,
                                  enum page_status (*read)(struct page *))
{
    lxb_html_document_t *document = lxb_html_document_create();
    if (!document)
        return PAGE_FAILED;
    page->tree = document;
    return parse(document, source, size) == LXB_STATUS_OK ? read(page) : PAGE_FAILED;
}

static enum page_status read_with(struct page *page, const unsigned char *source, size_t size,
                                  enum page_status (*read)(struct page *))
{
    jmp_buf out;
    *page = (struct page){0};
    if (!words_is_utf8(source, size))
        return PAGE_NOT_UTF8;
    if (setjmp(out)) {
        memory_lend(NULL);
        memory_free_all();
        kept = NULL;
        page->tree = NULL;
        return PAGE_NO_MEMORY;
    }
    memory_lend(&out);
    enum page_status status = read_page(page, source, size, read);
    memory_lend(NULL);
    return status;
}

enum page_status page_read(struct page *page, const unsigned char *source, size_t size)
{
    return read_with(page, source, size, read_tree);
}

enum page_status page_extract(struct page *page, const unsigned char *source, size_t size)
{
    return read_with(page, source, size, extract_tree);
}

void page_free(struct page *page)
{
    if (page->tree)
        lxb_html_document_destroy(page->tree);
    free(page->targets);
    free(page->metas);
    free(page->links);
    free(page->title.data);
    free(page->text.data);
    free(page->frame.data);
    free(page->shell.shown.data);
    free(page->shell.notice.data);
    *page = (struct page){0};
}
