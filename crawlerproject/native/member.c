/*
 * Records of WARC files for Python: out of their gzip members, their digests, and what an index says of them. Each answer
 * is that of rules/archive/ (http_messages.py, warc_members.py, index_rows.py), or none where a record is not plain:
 * Python judges it.
 */
#include <stdlib.h>
#include <string.h>

#include "binding.h"

enum {
    MOST_INFLATED = 8 * 1024 * 1024, /* larger records gain nothing */
    MOST_KEPT = 1024 * 1024,         /* of the room for them */
    MOST_TOGETHER = 512 * 1024,      /* of a list of members, but for its last: cached when their digests are asked for */
    TIME_DIGITS = 14,                /* YYYYmmddHHMMSS */
    MOST_MIME = 128,
};

static const char BLOCK_DIGEST[] = "warc-block-digest", PAYLOAD_DIGEST[] = "warc-payload-digest", SHA1[] = "sha1:";
static const size_t LABEL = sizeof SHA1 - 1;

static bool begins(struct page_span span, const char *text)
{
    size_t size = strlen(text);
    return span.size >= size && !memcmp(span.data, text, size);
}

static bool is(struct page_span span, const char *text)
{
    return span.size == strlen(text) && begins(span, text);
}

static PyObject *ascii(struct page_span span)
{
    PyObject *text = PyUnicode_New((Py_ssize_t)span.size, 127);
    if (text && span.size)
        memcpy(PyUnicode_1BYTE_DATA(text), span.data, span.size);
    return text;
}

static unsigned char small(unsigned char letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter;
}

void member_base32(const unsigned char *data, size_t size, unsigned char *letters)
{
    for (size_t at = 0; at < size; at += 5) {
        uint64_t bits = 0;
        for (size_t byte = 0; byte < 5; byte++)
            bits = bits << 8 | data[at + byte];
        for (int shift = 35; shift >= 0; shift -= 5)
            *letters++ = (unsigned char)"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits >> shift & 31];
    }
}

PyObject *member_record(PyObject *module, PyObject *data)
{
    unsigned char head[RECORD_HEAD];
    struct record record;
    (void)module;
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "a record is given in bytes");
        return NULL;
    }
    if (!record_read((const unsigned char *)PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data), head, sizeof head,
                     &record))
        return Py_NewRef(Py_None);
    return Py_BuildValue("(Ny#)", record_fields(&record, head), record.block.data, (Py_ssize_t)record.block.size);
}

/* The gzip member at a place, whose record it adds to a list as a Member; false where there is none that is plain. */
static bool add_member(PyObject *list, PyObject *type, struct page_span packed, size_t most, unsigned long long offset,
                       struct page_buffer *inflated, size_t *used)
{
    unsigned char head[RECORD_HEAD];
    struct record record;
    if (!inflate_member(packed.data, packed.size, inflated, most, used)) {
        *used = 0;
        return false;
    }
    if (!record_read(inflated->data, inflated->size, head, sizeof head, &record))
        return false;
    PyObject *fields[] = {
        PyLong_FromUnsignedLongLong(offset), PyLong_FromSize_t(*used), record_fields(&record, head),
        PyBytes_FromStringAndSize((const char *)record.block.data, (Py_ssize_t)record.block.size), Py_NewRef(Py_False)};
    bool right = true;
    for (size_t place = 0; place < 4; place++)
        right = right && fields[place];
    PyObject *member = NULL;
    if (right)
        member = made(type, fields, 5);
    else
        for (size_t place = 0; place < 5; place++)
            Py_XDECREF(fields[place]);
    right = member && !PyList_Append(list, member);
    Py_XDECREF(member);
    return right;
}

/* members(data, at, most, offset, type) -> (end, list, what): as many as are plain and whole, up to some bytes together,
 * the place behind the last, and what the first of all holds if it is a good member but no plain record (None if it is
 * not). ``type`` is Member, ``offset`` that of ``at`` in the file. */
PyObject *member_members(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    static struct page_buffer inflated;
    (void)module;
    if (count != 5 || !PyBytes_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "members() takes bytes, a place in them, the most bytes of a record, an offset, a type");
        return NULL;
    }
    size_t size = (size_t)PyBytes_GET_SIZE(given[0]), used = 0, together = 0;
    size_t at = PyLong_AsSize_t(given[1]), most = PyErr_Occurred() ? 0 : PyLong_AsSize_t(given[2]);
    unsigned long long offset = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(given[3]);
    PyObject *list = PyErr_Occurred() ? NULL : PyList_New(0), *what = NULL;
    const unsigned char *data = (const unsigned char *)PyBytes_AS_STRING(given[0]);
    most = most < MOST_INFLATED ? most : MOST_INFLATED;
    while (list && at < size && together < MOST_TOGETHER
           && add_member(list, given[4], (struct page_span){data + at, size - at}, most, offset, &inflated, &used)) {
        at += used;
        offset += used;
        together += inflated.size;
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    if (list && !PyList_GET_SIZE(list) && used) {
        what = PyBytes_FromStringAndSize((const char *)inflated.data, (Py_ssize_t)inflated.size);
        at += used;
    }
    if (inflated.capacity > MOST_KEPT) {
        free(inflated.data);
        inflated = (struct page_buffer){NULL, 0, 0};
    }
    if (!list || PyErr_Occurred()) {
        Py_XDECREF(list);
        Py_XDECREF(what);
        return NULL;
    }
    return Py_BuildValue("(nNN)", (Py_ssize_t)at, list, what ? what : Py_NewRef(Py_None));
}

/* Fields of the native reader and a block in bytes. */
static bool are_plain(PyObject *const *given, Py_ssize_t count, struct page_span *block)
{
    if (count != 2 || Py_TYPE(given[0]) != &head_type || !PyBytes_CheckExact(given[1]))
        return false;
    *block = (struct page_span){(const unsigned char *)PyBytes_AS_STRING(given[1]), (size_t)PyBytes_GET_SIZE(given[1])};
    return true;
}

/* How long the head of an HTTP message is: up to its first blank line. */
static size_t http_head(struct page_span block)
{
    for (const unsigned char *at = block.data, *end = at + block.size; (at = memchr(at, '\n', (size_t)(end - at)));) {
        at++;
        if (at < end && *at == '\n')
            return (size_t)(at + 1 - block.data);
        if (end - at > 1 && at[0] == '\r' && at[1] == '\n')
            return (size_t)(at + 2 - block.data);
    }
    return block.size;
}

bool member_sha1(const struct page_span *texts, size_t count, unsigned char digests[][SHA1_BYTES])
{
    static PyObject *sha1, *names; /* hashlib's, and those of its arguments */
    if (checksum_sha1(texts, count, digests))
        return true;
    if (!sha1) {
        PyObject *library = PyImport_ImportModule("hashlib");
        names = library ? Py_BuildValue("(s)", "usedforsecurity") : NULL;
        sha1 = names ? PyObject_GetAttrString(library, "sha1") : NULL;
        Py_XDECREF(library);
    }
    bool right = sha1 != NULL;
    for (size_t text = 0; right && text < count; text++) {
        PyObject *view = PyMemoryView_FromMemory((char *)texts[text].data, (Py_ssize_t)texts[text].size, PyBUF_READ);
        PyObject *hash = view ? PyObject_Vectorcall(sha1, (PyObject *[]){view, Py_False}, 1, names) : NULL;
        PyObject *made = hash ? PyObject_CallMethod(hash, "digest", NULL) : NULL;
        right = made != NULL;
        if (made)
            memcpy(digests[text], PyBytes_AS_STRING(made), SHA1_BYTES);
        Py_XDECREF(made);
        Py_XDECREF(hash);
        Py_XDECREF(view);
    }
    return right;
}

/* False: Python looks once more. */
PyObject *member_holds(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    unsigned char digests[2][SHA1_BYTES], letters[SHA1_LETTERS];
    struct page_span block, texts[2], stated[2];
    size_t held = 0;
    (void)module;
    if (!are_plain(given, count, &block))
        return Py_NewRef(Py_False);
    stated[held] = record_value(given[0], BLOCK_DIGEST);
    if (stated[held].size)
        texts[held++] = block;
    stated[held] = record_value(given[0], PAYLOAD_DIGEST);
    if (stated[held].size && !is(record_value(given[0], "warc-type"), "revisit")) {
        size_t start = begins(record_value(given[0], "content-type"), "application/http") ? http_head(block) : 0;
        texts[held++] = (struct page_span){block.data + start, block.size - start};
    }
    for (size_t text = 0; text < held; text++)
        if (stated[text].size != LABEL + SHA1_LETTERS || !begins(stated[text], SHA1))
            return Py_NewRef(Py_False);
    if (!member_sha1(texts, held, digests))
        return NULL;
    bool holds = true;
    for (size_t text = 0; text < held; text++) {
        member_base32(digests[text], SHA1_BYTES, letters);
        holds = holds && !memcmp(stated[text].data + LABEL, letters, SHA1_LETTERS);
    }
    return PyBool_FromLong(holds);
}

/* The value of a Content-Type without its parameters, in small letters; false if it is not of ASCII, or long. */
static bool media_type(struct page_span head, unsigned char *mime, size_t *size)
{
    static const char name[] = "content-type";
    const unsigned char *at = head.data, *end = at + head.size;
    *size = 0;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        size_t letter = 0;
        for (at++; at < end && letter < sizeof name - 1 && small(*at) == name[letter]; at++)
            letter++;
        if (letter < sizeof name - 1)
            continue;
        for (; at < end && (*at == ' ' || *at == '\t'); at++)
            ;
        if (at == end || *at != ':')
            continue;
        for (at++; at < end && *at != '\r' && *at != '\n' && *at != ';'; at++) {
            if (*at > '~' || (*at < ' ' && *at != '\t') || *size == MOST_MIME)
                return false;
            if (*size || (*at != ' ' && *at != '\t'))
                mime[(*size)++] = small(*at);
        }
        while (*size && (mime[*size - 1] == ' ' || mime[*size - 1] == '\t'))
            --*size;
        return true;
    }
    return true;
}

/* Of a status line as it should be; 0 of any other. */
static int status_of(struct page_span head)
{
    size_t at = 0;
    if (!begins(head, "HTTP/"))
        return 0;
    while (at < head.size && head.data[at] > ' ' && head.data[at] <= '~')
        at++;
    size_t blank = at;
    while (at < head.size && head.data[at] == ' ')
        at++;
    if (at == blank || head.size - at < 3)
        return 0;
    int status = 0;
    for (size_t end = at + 3; at < end; at++) {
        if (head.data[at] < '0' || head.data[at] > '9')
            return 0;
        status = status * 10 + (head.data[at] - '0');
    }
    return status;
}

/* Line breaks of one kind, as all heads of ours have them. */
static bool is_regular(struct page_span head)
{
    for (const unsigned char *at = head.data, *end = at + head.size; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        if (at == head.data || at[-1] != '\r')
            return false;
    return true;
}

/* URL, time, media type, identified type, status, digest and truncation; None of a redirect, too, which is joined. */
PyObject *member_row(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    unsigned char mime[MOST_MIME], digits[TIME_DIGITS];
    size_t mime_size, digit_count = 0;
    struct page_span block;
    (void)module;
    if (!are_plain(given, count, &block))
        return Py_NewRef(Py_None);
    struct page_span head = {block.data, http_head(block)}, digest = record_value(given[0], PAYLOAD_DIGEST);
    struct page_span url = record_value(given[0], "warc-target-uri"), date = record_value(given[0], "warc-date");
    bool revisit = is(record_value(given[0], "warc-type"), "revisit");
    int status = status_of(head);
    if (begins(digest, SHA1))
        digest = (struct page_span){digest.data + LABEL, digest.size - LABEL};
    if (!digest.size || !status || (status >= 300 && status < 400) || !is_regular(head)
        || !media_type(head, mime, &mime_size))
        return Py_NewRef(Py_None);
    for (; url.size && (*url.data == '<' || *url.data == '>'); url.size--)
        url.data++;
    while (url.size && (url.data[url.size - 1] == '<' || url.data[url.size - 1] == '>'))
        url.size--;
    for (size_t at = 0; at < date.size && digit_count < TIME_DIGITS; at++)
        if (date.data[at] >= '0' && date.data[at] <= '9')
            digits[digit_count++] = date.data[at];
    struct page_span truncated = revisit ? (struct page_span){NULL, 0} : record_value(given[0], "warc-truncated");
    return Py_BuildValue("(NNNNiNN)", ascii(url), ascii((struct page_span){digits, digit_count}),
                         ascii((struct page_span){mime, revisit ? 0 : mime_size}),
                         ascii(record_value(given[0], "warc-identified-payload-type")), status, ascii(digest),
                         ascii(truncated));
}

/* Behind the name of a field, its colon and blanks, if a line has that name (in small letters); NULL if not. */
static const unsigned char *value_of(const unsigned char *at, const unsigned char *end, const char *name)
{
    for (; *name; at++, name++)
        if (at == end || small(*at) != (unsigned char)*name)
            return NULL;
    for (; at < end && (*at == ' ' || *at == '\t'); at++)
        ;
    return at < end && *at == ':' ? at + 1 : NULL;
}

/* Whether a Content-Length is this number, in digits alone behind one blank or none, on a line that is not folded. */
static bool is_length(const unsigned char *at, const unsigned char *end, size_t wanted)
{
    enum { MOST_DIGITS = 19 };
    uint64_t length = 0;
    const unsigned char *start = at += at < end && *at == ' ';
    for (; at < end && *at >= '0' && *at <= '9' && at - start < MOST_DIGITS; at++)
        length = length * 10 + (uint64_t)(*at - '0');
    return at > start && end - at > 2 && at[0] == '\r' && at[1] == '\n' && at[2] != ' ' && at[2] != '\t' && length == wanted;
}

static bool begins_small(const unsigned char *at, const unsigned char *end, const char *text)
{
    for (; *text; at++, text++)
        if (at == end || small(*at) != (unsigned char)*text)
            return false;
    return true;
}

/* head(head, body_bytes) -> (media type, whether the body is compressed) of an HTTP head that is stored as it came; None
 * of others, which Python edits, and of a media type that is odd. */
PyObject *member_head(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    unsigned char mime[MOST_MIME];
    size_t mime_size;
    bool encoded = false;
    (void)module;
    if (count != 2 || !PyBytes_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "head() takes a head in bytes and the length of the body");
        return NULL;
    }
    size_t body_bytes = PyLong_AsSize_t(given[1]), size = (size_t)PyBytes_GET_SIZE(given[0]);
    if (PyErr_Occurred())
        return NULL;
    const unsigned char *data = (const unsigned char *)PyBytes_AS_STRING(given[0]), *end = data + size, *at = data, *value;
    struct page_span head = {data, size};
    if (size <= 4 || memcmp(end - 4, "\r\n\r\n", 4) || (size >= 6 && !memcmp(end - 6, "\r\n", 2)) || !is_regular(head)
        || !media_type(head, mime, &mime_size))
        return Py_NewRef(Py_None);
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if ((value = value_of(at, end, "content-length")) && !is_length(value, end, body_bytes))
            return Py_NewRef(Py_None);
        if ((value = value_of(at, end, "content-encoding"))) {
            for (; value < end && (*value == ' ' || *value == '\t'); value++)
                ;
            encoded |= value < end && !(*value >= '\n' && *value <= '\r') && !begins_small(value, end, "identity");
        }
    }
    return Py_BuildValue("(NO)", ascii((struct page_span){mime, mime_size}), encoded ? Py_True : Py_False);
}
