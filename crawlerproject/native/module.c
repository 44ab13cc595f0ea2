/*
 * crawlerproject.native._page: page.h for Python.
 *
 *   read(source) -> (targets, nofollow, refreshes, metas, base, canonical, title, words, text, fingerprint, shell)
 *       targets    list of str: what links ask to be followed, as written, without those of rel=nofollow
 *       nofollow   int: how many those are
 *       refreshes  list of (int, str): contents of meta refresh, and how many targets stand before each
 *       metas      list of (str, str): name and content
 *       base, canonical  str or None
 *       title      str, its blanks as written
 *       words      int; text: bytes in UTF-8; fingerprint: int or None
 *       shell      None, or (links, script_characters, shown_characters, shown, notice, empty_root), or False where
 *                  Python has to count the links
 *       None in place of the tuple: the source is not UTF-8, Python has to read it.
 *   extract(source) -> (title, text, words, base, language, may_have_data, links), or None likewise
 *       text       str: a line a block; words int; base, language str or None
 *       links      list of (target, words, rel, is_canonical)
 *   is_utf8(source) -> bool, as bytes.decode judges it, without the text
 *   weight(source) -> int, as Weight of rules/page/body.py
 *   near(values, value, bits) -> list of (int, int), as rules/text_likeness.py
 *   features(steps, states, places, text) -> bytes, pairs of int64: features of a language model and how often each is
 *       met, in the order of the first times; ``places``, array("I"), has as many zeros as there are features
 *   record(data) -> (fields, block): a plain WARC record's, as rules/archive/warc_members.py; None of others
 *   member(data, at, most) -> (end, fields, block): the record of the gzip member that begins there, up to so many bytes;
 *       (end, None, all of it) of one that is not plain; None: Python has to inflate it, or the member goes on behind data
 *   holds(fields, block) -> bool: its digests do; False: Python looks once more
 *   row(fields, block) -> (url, time, mime, identified, status, digest, truncated), as row_of_member in
 *       rules/archive/index_rows.py; None of others
 *   capture(…), log_line(result, written, now) -> what the archive, its index and the log get of a page; None of odd ones
 *   short(fields, block) -> the record of ``sealed`` as a gzip member; None: Python compresses it
 *   ids(random) -> tuple of str: of each 16 bytes a record id, as new_record_ids
 *   base32(data) -> str, of bytes in groups of five
 *   addresses, followed, news, allowed, settled, put_rows: links.c; census: census.c
 *   LIMITS, SOURCES  the numbers that both readers share; the digest of what this was built from
 *
 * Nothing of Python is called during the walk.
 */
#include <string.h>

#include "binding.h"

#ifndef CRAWLER_SOURCES
#define CRAWLER_SOURCES ""
#endif

static PyObject *text_object(const unsigned char *data, size_t size)
{
    return PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)size, "replace");
}

static PyObject *span_or_none(struct page_span span)
{
    return span.data ? text_object(span.data, span.size) : Py_NewRef(Py_None);
}

static PyObject *buffer_text(const struct page_buffer *buffer)
{
    return text_object(buffer->data, buffer->size);
}

static size_t count_kind(const struct page *page, unsigned kind)
{
    size_t count = 0;
    for (size_t place = 0; place < page->target_count; place++)
        count += (page->targets[place].kind & kind) != 0;
    return count;
}

static PyObject *targets_object(const struct page *page)
{
    size_t left_out = count_kind(page, PAGE_NOFOLLOW | PAGE_REFRESH);
    Py_ssize_t filled = 0;
    PyObject *list = PyList_New((Py_ssize_t)(page->target_count - left_out));
    for (size_t place = 0; list && place < page->target_count; place++) {
        const struct page_target *target = &page->targets[place];
        if (target->kind & (PAGE_NOFOLLOW | PAGE_REFRESH))
            continue;
        PyObject *address = text_object(target->address.data, target->address.size);
        if (!address)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, filled++, address);
    }
    return list;
}

static PyObject *refreshes_object(const struct page *page)
{
    Py_ssize_t before = 0, filled = 0;
    PyObject *list = PyList_New((Py_ssize_t)count_kind(page, PAGE_REFRESH));
    for (size_t place = 0; list && place < page->target_count; place++) {
        const struct page_target *target = &page->targets[place];
        if (!(target->kind & PAGE_REFRESH)) {
            before += !(target->kind & PAGE_NOFOLLOW);
            continue;
        }
        PyObject *content = text_object(target->address.data, target->address.size);
        PyObject *pair = content ? Py_BuildValue("(nN)", before, content) : NULL;
        if (!pair)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, filled++, pair);
    }
    return list;
}

static PyObject *metas_object(const struct page *page)
{
    PyObject *list = PyList_New((Py_ssize_t)page->meta_count);
    for (size_t place = 0; list && place < page->meta_count; place++) {
        const struct page_meta *meta = &page->metas[place];
        PyObject *name = text_object(meta->name.data, meta->name.size);
        PyObject *content = name ? text_object(meta->content.data, meta->content.size) : NULL;
        PyObject *pair = content ? PyTuple_Pack(2, name, content) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(content);
        if (!pair)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)place, pair);
    }
    return list;
}

static PyObject *shell_object(const struct page_shell *shell)
{
    if (shell->state == PAGE_WHOLE)
        return Py_NewRef(Py_None);
    if (shell->state == PAGE_UNCLEAR)
        return Py_NewRef(Py_False);
    return Py_BuildValue("(nnnNNO)", (Py_ssize_t)shell->links, (Py_ssize_t)shell->script_characters,
                         (Py_ssize_t)shell->shown_characters, buffer_text(&shell->shown), buffer_text(&shell->notice),
                         shell->empty_root ? Py_True : Py_False);
}

static PyObject *page_object(const struct page *page)
{
    return Py_BuildValue(
        "(NnNNNNNnNNN)", targets_object(page), (Py_ssize_t)count_kind(page, PAGE_NOFOLLOW), refreshes_object(page),
        metas_object(page), span_or_none(page->base), span_or_none(page->canonical), buffer_text(&page->title),
        (Py_ssize_t)page->words,
        PyBytes_FromStringAndSize((const char *)page->text.data, (Py_ssize_t)page->text.size),
        page->has_fingerprint ? PyLong_FromUnsignedLongLong(page->fingerprint) : Py_NewRef(Py_None),
        shell_object(&page->shell));
}

static int source_of(PyObject *object, const unsigned char **source, size_t *size)
{
    if (!PyBytes_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a page is given in bytes");
        return 0;
    }
    *source = (const unsigned char *)PyBytes_AS_STRING(object);
    *size = (size_t)PyBytes_GET_SIZE(object);
    return 1;
}

static PyObject *links_object(const struct page *page)
{
    PyObject *list = PyList_New((Py_ssize_t)page->link_count);
    for (size_t place = 0; list && place < page->link_count; place++) {
        const struct page_link *link = &page->links[place];
        PyObject *made = Py_BuildValue("(NNNO)", text_object(link->target.data, link->target.size),
                                       text_object(page->frame.data + link->words, link->words_size),
                                       text_object(link->rel.data, link->rel.size),
                                       link->is_canonical ? Py_True : Py_False);
        if (!made)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)place, made);
    }
    return list;
}

static PyObject *extract_object(const struct page *page)
{
    return Py_BuildValue("(NNnNNON)", buffer_text(&page->title), buffer_text(&page->text), (Py_ssize_t)page->words,
                         span_or_none(page->base), span_or_none(page->language),
                         page->may_have_data ? Py_True : Py_False, links_object(page));
}

static PyObject *read_object(PyObject *object, enum page_status (*read)(struct page *, const unsigned char *, size_t),
                             PyObject *(*made)(const struct page *))
{
    const unsigned char *source;
    size_t size;
    struct page page;
    PyObject *result = NULL;
    if (!source_of(object, &source, &size))
        return NULL;
    switch (read(&page, source, size)) {
    case PAGE_OK:
        result = made(&page);
        break;
    case PAGE_NO_MEMORY:
        PyErr_NoMemory();
        break;
    case PAGE_NOT_UTF8:
        result = Py_NewRef(Py_None);
        break;
    case PAGE_FAILED:
        PyErr_SetString(PyExc_ValueError, "the page cannot be parsed");
        break;
    }
    page_free(&page);
    return result;
}

static PyObject *module_read(PyObject *module, PyObject *object)
{
    (void)module;
    return read_object(object, page_read, page_object);
}

static PyObject *module_extract(PyObject *module, PyObject *object)
{
    (void)module;
    return read_object(object, page_extract, extract_object);
}

static PyObject *module_weight(PyObject *module, PyObject *object)
{
    const unsigned char *source;
    size_t size;
    (void)module;
    if (!source_of(object, &source, &size))
        return NULL;
    int weight = page_weight(source, size);
    return weight == PAGE_WEIGHT_UNKNOWN ? PyErr_NoMemory() : PyLong_FromLong(weight);
}

static PyObject *module_is_utf8(PyObject *module, PyObject *object)
{
    const unsigned char *source;
    size_t size;
    (void)module;
    return source_of(object, &source, &size) ? PyBool_FromLong(words_is_utf8(source, size)) : NULL;
}

/* bytes.translate(None, …) in a third of the time. */
static PyObject *module_said(PyObject *module, PyObject *object)
{
    const unsigned char *source;
    size_t size;
    (void)module;
    if (!source_of(object, &source, &size))
        return NULL;
    PyObject *said = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size + WORDS_SAID_ROOM));
    if (!said)
        return NULL;
    size_t left = words_said(source, size, (unsigned char *)PyBytes_AS_STRING(said));
    _PyBytes_Resize(&said, (Py_ssize_t)left);
    return said;
}

static PyObject *near_object(const Py_buffer *values, uint64_t wanted, int bits)
{
    const unsigned char *data = values->buf;
    size_t count = (size_t)values->len / sizeof wanted;
    PyObject *list = PyList_New(0);
    size_t place = nearest_next(data, count, wanted, bits, 0);
    while (list && place < count) {
        PyObject *pair = Py_BuildValue("(ni)", (Py_ssize_t)place, nearest_bits(data, place, wanted));
        if (!pair || PyList_Append(list, pair))
            Py_CLEAR(list);
        Py_XDECREF(pair);
        place = nearest_next(data, count, wanted, bits, place + 1);
    }
    return list;
}

static PyObject *module_near(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer values;
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "near() takes values, a value and bits");
        return NULL;
    }
    unsigned long long wanted = PyLong_AsUnsignedLongLong(given[1]);
    long bits = PyErr_Occurred() ? -1 : PyLong_AsLong(given[2]);
    if (PyErr_Occurred() || PyObject_GetBuffer(given[0], &values, PyBUF_SIMPLE))
        return NULL;
    PyObject *list = near_object(&values, wanted, bits > 64 ? 64 : bits < 0 ? -1 : (int)bits);
    PyBuffer_Release(&values);
    return list;
}

enum { STEPS, STATES, PLACES, TABLE, TEXT, MODEL_PARTS };

static PyObject *scores_object(const Py_buffer *parts)
{
    size_t size = (size_t)parts[TEXT].len, count = 0;
    struct automaton model = {
        .steps = parts[STEPS].buf,
        .step_count = (size_t)parts[STEPS].len / sizeof *model.steps,
        .states = parts[STATES].buf,
        .state_count = (size_t)parts[STATES].len / sizeof *model.states,
        .feature_count = (size_t)parts[PLACES].len / sizeof(uint32_t),
    };
    size_t most = size < model.feature_count ? size : model.feature_count;
    size_t classes = model.feature_count ? (size_t)parts[TABLE].len / sizeof(float) / model.feature_count : 0;
    PyObject *scores = NULL;
    struct automaton_feature *found = PyMem_New(struct automaton_feature, most + 1);
    if (!found)
        return PyErr_NoMemory();
    if (!automaton_walk(&model, parts[TEXT].buf, size, parts[PLACES].buf, found, &count))
        PyErr_SetString(PyExc_ValueError, "the model leads out of its tables");
    else if ((scores = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((count ? classes : 0) * sizeof(float)))) && count) {
        float *sums = (float *)(void *)PyBytes_AS_STRING(scores);
        memset(sums, 0, classes * sizeof *sums);
        automaton_sum(parts[TABLE].buf, classes, found, count, sums);
    }
    PyMem_Free(found);
    return scores;
}

static PyObject *module_scores(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer parts[MODEL_PARTS];
    PyObject *scores = NULL;
    int held = 0;
    (void)module;
    if (count != MODEL_PARTS) {
        PyErr_SetString(PyExc_TypeError, "scores() takes steps, states, places, a table and a text");
        return NULL;
    }
    for (; held < MODEL_PARTS; held++)
        if (PyObject_GetBuffer(given[held], &parts[held], held == PLACES ? PyBUF_WRITABLE : PyBUF_SIMPLE))
            break;
    if (held == MODEL_PARTS)
        scores = scores_object(parts);
    while (held--)
        PyBuffer_Release(&parts[held]);
    return scores;
}

static PyObject *module_base32(PyObject *module, PyObject *object)
{
    const unsigned char *data;
    size_t size;
    (void)module;
    if (!source_of(object, &data, &size))
        return NULL;
    if (size % 5) {
        PyErr_SetString(PyExc_ValueError, "base32 takes groups of five bytes");
        return NULL;
    }
    PyObject *text = PyUnicode_New((Py_ssize_t)(size / 5 * 8), 127);
    if (text)
        member_base32(data, size, PyUnicode_1BYTE_DATA(text));
    return text;
}

#define SEVERAL(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef methods[] = {
    {"read", module_read, METH_O, "What a page in UTF-8 says."},
    {"extract", module_extract, METH_O, "What a search index gets of a page in UTF-8."},
    {"is_utf8", module_is_utf8, METH_O, "Whether bytes are UTF-8, as bytes.decode judges it."},
    {"said", module_said, METH_O, "A text without digits and blanks."},
    {"near", SEVERAL(module_near), "Places near a value, and their distances."},
    {"scores", SEVERAL(module_scores), "What a language model says of a text."},
    {"record", member_record, METH_O, "Fields and block of a WARC record."},
    {"members", SEVERAL(member_members), "The records of gzip members that follow each other."},
    {"holds", SEVERAL(member_holds), "Whether a record's digests hold."},
    {"row", SEVERAL(member_row), "What an index says of a capture."},
    {"sealed", SEVERAL(capture_sealed), "A WARC record of its fields and its block."},
    {"short", SEVERAL(capture_short), "The gzip member of a short WARC record."},
    {"capture", SEVERAL(capture_capture), "The members of a capture, and what index and log say of it."},
    {"log_line", SEVERAL(capture_log_line), "The line of a page in the request log."},
    {"ids", capture_ids, METH_O, "Record ids of random bytes."},
    {"head", SEVERAL(member_head), "Of an HTTP head that is stored as it came, the media type, and whether its body is compressed."},
    {"base32", module_base32, METH_O, "Bytes in groups of five, as a digest is written."},
    {"addresses", SEVERAL(links_addresses), "What links of a page mean, each page once."},
    {"targets", SEVERAL(links_targets), "What links of a page mean, for a search index."},
    {"followed", SEVERAL(links_followed), "These as what is found on a page."},
    {"news", SEVERAL(links_news), "What of it was not found lately."},
    {"allowed", SEVERAL(links_allowed), "What of it no gate refuses."},
    {"settled", SEVERAL(links_settled), "How many of a host that is settled."},
    {"rows", SEVERAL(links_rows), "Rows of a host's queue."},
    {"put_rows", SEVERAL(links_put_rows), "Rows of a host's queue into a batch."},
    {"census", census_hosts, METH_VARARGS, "Hosts of a crawl, counted."},
    {"weight", module_weight, METH_O, "What parsing a page could take: 0, 1 or 2."},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    if (PyType_Ready(&head_type))
        return -1;
    PyObject *limits = Py_BuildValue(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "MIN_WORDS", PAGE_MIN_WORDS, "MAX_WORDS", PAGE_MAX_WORDS, "ENOUGH_WORDS",
        PAGE_ENOUGH_WORDS, "ENOUGH_LINKS", PAGE_ENOUGH_LINKS, "MOST_ELEMENTS", PAGE_MOST_ELEMENTS, "MOST_NOTICE",
        PAGE_MOST_NOTICE, "EMPTY_ROOT_WORDS", PAGE_EMPTY_ROOT_WORDS, "MOST_LINKS", PAGE_MOST_LINKS, "MOST_ANCHOR",
        PAGE_MOST_ANCHOR, "MOST_READ", PAGE_MOST_READ);
    int failed = PyModule_AddObjectRef(module, "LIMITS", limits);
    Py_XDECREF(limits);
    return failed ? failed : PyModule_AddStringConstant(module, "SOURCES", CRAWLER_SOURCES);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_page",
    .m_doc = "Reads pages in C.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__page(void)
{
    return PyModuleDef_Init(&definition);
}
