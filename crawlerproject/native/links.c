/*
 * A page's links on their way to the queue, for Python. What nearly all of them are like is decided here; each other
 * one is given to the callable that decides about any. Without this file all are: rules/url/urls.py (Base.addresses),
 * parse/links.py (followed), frontier/admission.py, stores/rocks/rocks_queues.py.
 */
#include "binding.h"

#include <string.h>

/* Places in an Address, a DiscoveredUrl and a QueuedPage (rules/url/urls.py, frontier/passage.py, stores/protocols.py). */
enum { URL, KEY, HOST, SCHEME, ADDRESS_FIELDS };
enum { ADDRESS, DEPTH, HOPS, VIA, PRIORITY, FLAGS, NOTE, FOUND_FIELDS };
enum { ROW_HOST, ROW_KEY, ROW_URL, ROW_PRIORITY, ROW_ARRIVAL, ROW_DEPTH, ROW_HOPS, ROW_VIA, ROW_TRIES, ROW_FLAGS, ROW_NOTE,
       ROW_FIELDS };

enum { KEY_BYTES = 24, MOST_PIECES = 16, MOST_SEGMENTS = 20, LEAST_SLASHES = 3, MOST_EXTENSION = 32, PLACE_BYTES = 9, ROW_HEAD = 44 };

struct text {
    const unsigned char *data;
    size_t size;
};

/* Of a str that is ASCII alone; 0 for others. */
static int ascii_of(PyObject *object, struct text *text)
{
    if (!PyUnicode_Check(object) || !PyUnicode_IS_COMPACT_ASCII(object))
        return 0;
    text->data = PyUnicode_1BYTE_DATA(object);
    text->size = (size_t)PyUnicode_GET_LENGTH(object);
    return 1;
}

static int starts_with(struct text text, struct text start)
{
    return text.size >= start.size && !memcmp(text.data, start.data, start.size);
}

/* A field of a tuple, borrowed; NULL with an error for what has not so many fields. */
static PyObject *field(PyObject *tuple, Py_ssize_t fields, Py_ssize_t place)
{
    if (PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) == fields)
        return PyTuple_GET_ITEM(tuple, place);
    PyErr_SetString(PyExc_TypeError, "no address, link or row");
    return NULL;
}

static PyObject *address_field(PyObject *found, Py_ssize_t place)
{
    PyObject *address = field(found, FOUND_FIELDS, ADDRESS);
    return address ? field(address, ADDRESS_FIELDS, place) : NULL;
}

static int takes(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", wanted, count);
    return 0;
}

/* As binding.h says. */
PyObject *made(PyObject *type, PyObject *const *fields, Py_ssize_t count)
{
    PyTypeObject *kind = (PyTypeObject *)type;
    PyObject *tuple = NULL;
    if (PyType_Check(type) && PyType_IsSubtype(kind, &PyTuple_Type))
        tuple = kind->tp_alloc(kind, count);
    else
        PyErr_SetString(PyExc_TypeError, "no kind of tuple");
    for (Py_ssize_t place = 0; place < count; place++)
        if (tuple)
            PyTuple_SET_ITEM(tuple, place, fields[place]);
        else
            Py_XDECREF(fields[place]);
    return tuple;
}

/* --- addresses: what links of a page mean ------------------------------------------------------------------------- */

enum { FIRST = 1, OTHER = 2 };

/* Characters of simple paths: those with which a part may begin, and the point. */
static int path_class(unsigned char octet)
{
    int letter = octet | 32;
    if ((letter >= 'a' && letter <= 'z') || (octet >= '0' && octet <= '9') || octet == '_' || octet == '~' || octet == '-')
        return FIRST | OTHER;
    return octet == '.' ? OTHER : 0;
}

/* As _SIMPLE of rules/url/urls.py: joined as it stands. */
static int is_simple(struct text text)
{
    size_t at = text.size && text.data[0] == '/';
    do {
        if (at == text.size || !(path_class(text.data[at]) & FIRST))
            return 0;
        while (++at < text.size && path_class(text.data[at]))
            ;
        if (at == text.size)
            return 1;
        if (text.data[at] != '/')
            return 0;
    } while (++at < text.size);
    return 1;
}

static int compare(struct text one, struct text other)
{
    int order = memcmp(one.data, other.data, one.size < other.size ? one.size : other.size);
    return order ? order : (one.size > other.size) - (one.size < other.size);
}

/* Whether a query has only what no parser changes and no escape or session in a path begins with. */
static int is_plain_query(struct text query)
{
    for (size_t at = 0; at < query.size; at++)
        if (!path_class(query.data[at]) && !memchr("!$&)*+,=:@/?", query.data[at], 12))
            return 0;
    return query.size > 0;
}

/* Pieces between "&" in the order of ``_key_text`` of rules/url/urls.py; how many, 0 where Python has to look, -1 with an
 * error. shapes[name] is None where the parameter means something whatever its value. */
static int sorted_pieces(struct text query, PyObject *shapes, struct text *pieces)
{
    int count = 0;
    for (size_t start = 0, at = 0; at <= query.size; at++) {
        if (at < query.size && query.data[at] != '&')
            continue;
        struct text piece = {query.data + start, at - start};
        const unsigned char *end = memchr(piece.data, '=', piece.size);
        size_t name_size = end ? (size_t)(end - piece.data) : piece.size;
        PyObject *name = PyUnicode_FromStringAndSize((const char *)piece.data, (Py_ssize_t)name_size);
        PyObject *shape = name ? PyDict_GetItemWithError(shapes, name) : NULL;
        Py_XDECREF(name);
        if (PyErr_Occurred())
            return -1;
        if (shape != Py_None || count == MOST_PIECES)
            return 0;
        int place = count++;
        for (; place && compare(piece, pieces[place - 1]) < 0; place--)
            pieces[place] = pieces[place - 1];
        pieces[place] = piece;
        start = at + 1;
    }
    return count;
}

/* What the addresses of a host have in common. */
struct site {
    struct text digest;
    PyObject *host, *scheme;
};

struct page_base {
    struct text origin, folder;
    struct site own;
    PyObject *digest, *type, *shapes, *others;
};

static PyObject *joined(struct text before, int slash, struct text path)
{
    PyObject *url = PyUnicode_New((Py_ssize_t)(before.size + (size_t)slash + path.size), 127);
    unsigned char *out = url ? PyUnicode_1BYTE_DATA(url) : NULL;
    if (url) {
        memcpy(out, before.data, before.size);
        if (slash)
            out[before.size] = '/';
        memcpy(out + before.size + slash, path.data, path.size);
    }
    return url;
}

/* The other site on which an absolute link leads to ``path``: others["http://host"] is (host, scheme, digest). */
static int other_site(const struct page_base *base, PyObject *target, struct text *path, struct site *site)
{
    enum { OTHER_HOST, OTHER_SCHEME, OTHER_DIGEST, OTHER_FIELDS, LONGEST_SCHEME = 8 };
    if (path->size <= LONGEST_SCHEME || memcmp(path->data, "http", 4))
        return 0;
    const unsigned char *slash = memchr(path->data + LONGEST_SCHEME, '/', path->size - LONGEST_SCHEME);
    size_t size = slash ? (size_t)(slash - path->data) : 0;
    PyObject *origin = size ? PyUnicode_Substring(target, 0, (Py_ssize_t)size) : NULL;
    PyObject *known = origin ? PyDict_GetItemWithError(base->others, origin) : NULL;
    Py_XDECREF(origin);
    PyObject *digest = known ? field(known, OTHER_FIELDS, OTHER_DIGEST) : NULL;
    if (!digest)
        return 0;
    site->digest = (struct text){(unsigned char *)PyBytes_AS_STRING(digest), (size_t)PyBytes_GET_SIZE(digest)};
    site->host = PyTuple_GET_ITEM(known, OTHER_HOST);
    site->scheme = PyTuple_GET_ITEM(known, OTHER_SCHEME);
    *path = (struct text){slash, path->size - size};
    return 1;
}

/* The URL that a simple link means (without a fragment), its site and its query; NULL: it is none, or an error is set. */
static PyObject *simple_url(const struct page_base *base, PyObject *target, struct site *site, struct text *query)
{
    struct text href, path;
    if (!ascii_of(target, &href))
        return NULL;
    *site = base->own;
    const unsigned char *mark = memchr(href.data, '#', href.size);
    size_t size = href.size;
    if (mark)
        href.size = (size_t)(mark - href.data);
    mark = memchr(href.data, '?', href.size);
    *query = (struct text){NULL, 0};
    path = href;
    if (mark) {
        path.size = (size_t)(mark - href.data);
        *query = (struct text){mark + 1, href.size - path.size - 1};
        if (!is_plain_query(*query))
            return NULL;
    }
    if (is_simple(path))
        return href.data[0] == '/' ? joined(base->origin, 0, href) : joined(base->folder, 1, href);
    if (!other_site(base, target, &path, site) || !is_simple(path))
        return NULL;
    return href.size == size ? Py_NewRef(target) : PyUnicode_Substring(target, 0, (Py_ssize_t)href.size);
}

/* What a simple URL is known by, in bytes; None where Python has to look. */
static PyObject *simple_text(const struct page_base *base, PyObject *url, struct text query)
{
    struct text text, pieces[MOST_PIECES];
    int count = query.size ? sorted_pieces(query, base->shapes, pieces) : 0;
    if (!ascii_of(url, &text) || count < 0)
        return NULL;
    if (query.size && !count)
        return Py_NewRef(Py_None);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)text.data, (Py_ssize_t)text.size);
    char *out = bytes && count > 1 ? PyBytes_AS_STRING(bytes) + text.size - query.size : NULL;
    for (int place = 0; out && place < count; place++) {
        memcpy(out, pieces[place].data, pieces[place].size);
        out += pieces[place].size;
        if (place + 1 < count)
            *out++ = '&';
    }
    return bytes;
}

/* The address of a simple URL, which it takes over; None where Python has to look. */
static PyObject *simple_address(const struct page_base *base, const struct site *site, PyObject *url, struct text query)
{
    PyObject *key = NULL, *bytes, *digest = NULL;
    bytes = simple_text(base, url, query);
    if (bytes == Py_None) {
        Py_DECREF(url);
        return bytes;
    }
    if (bytes)
        digest = PyObject_CallOneArg(base->digest, bytes);
    Py_XDECREF(bytes);
    if (digest && PyBytes_Check(digest) && site->digest.size + (size_t)PyBytes_GET_SIZE(digest) == KEY_BYTES)
        key = PyBytes_FromStringAndSize(NULL, KEY_BYTES);
    else if (digest)
        PyErr_SetString(PyExc_ValueError, "a digest has another length");
    if (key) {
        memcpy(PyBytes_AS_STRING(key), site->digest.data, site->digest.size);
        memcpy(PyBytes_AS_STRING(key) + site->digest.size, PyBytes_AS_STRING(digest), (size_t)PyBytes_GET_SIZE(digest));
    }
    Py_XDECREF(digest);
    if (!key) {
        Py_DECREF(url);
        return NULL;
    }
    PyObject *fields[ADDRESS_FIELDS] = {url, key, Py_NewRef(site->host), Py_NewRef(site->scheme)};
    return made(base->type, fields, ADDRESS_FIELDS);
}

/* Puts the address of one target among the others; 0 with an error. */
static int add_address(PyObject *addresses, const struct page_base *base, PyObject *target, PyObject *join)
{
    struct text query;
    struct site site;
    PyObject *url = simple_url(base, target, &site, &query), *address = NULL, *key;
    if (url)
        address = simple_address(base, &site, url, query);
    if (PyErr_Occurred())
        return 0;
    if (!url || address == Py_None) {
        Py_XDECREF(address);
        address = PyObject_CallOneArg(join, target);
    }
    if (!address)
        return 0;
    if (address == Py_None) {
        Py_DECREF(address);
        return 1;
    }
    key = field(address, ADDRESS_FIELDS, KEY);
    int done = key && PyDict_SetDefault(addresses, key, address);
    Py_DECREF(address);
    return done;
}

/* addresses(targets, join, digest, type, origin, folder, own, scheme, own_digest, shapes, others, own_key) -> list of addresses */
PyObject *links_addresses(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    struct page_base base;
    (void)module;
    if (!takes(count, 12))
        return NULL;
    if (!ascii_of(given[4], &base.origin) || !ascii_of(given[5], &base.folder) || !PyBytes_Check(given[8])
        || !PyDict_Check(given[9]) || !PyDict_Check(given[10])) {
        PyErr_SetString(PyExc_TypeError, "origin and folder are of ASCII, a digest is bytes, shapes and others are dicts");
        return NULL;
    }
    base.digest = given[2], base.type = given[3], base.shapes = given[9], base.others = given[10];
    base.own.digest = (struct text){(unsigned char *)PyBytes_AS_STRING(given[8]), (size_t)PyBytes_GET_SIZE(given[8])};
    base.own.host = given[6], base.own.scheme = given[7];
    PyObject *targets = PySequence_Fast(given[0], "targets are a list"), *found = NULL;
    PyObject *addresses = targets ? PyDict_New() : NULL;
    int done = addresses != NULL;
    for (Py_ssize_t place = 0; done && place < PySequence_Fast_GET_SIZE(targets); place++)
        done = add_address(addresses, &base, PySequence_Fast_GET_ITEM(targets, place), given[1]);
    if (done) {
        int has = PyDict_Contains(addresses, given[11]);
        done = has >= 0 && (!has || !PyDict_DelItem(addresses, given[11]));
    }
    if (done)
        found = PyDict_Values(addresses);
    Py_XDECREF(addresses);
    Py_XDECREF(targets);
    return found;
}

/* Characters of _SEGMENT and of a query (rules/url/urls.py): those with which a part of a path may begin, those that may
 * follow, and those of a query. */
enum { PART_FIRST = 1, PART_OTHER = 2, QUERY = 4 };

static int written_class(unsigned char octet)
{
    if (octet == '/' || octet == '?')
        return QUERY;
    if (octet == '\'')
        return PART_FIRST | PART_OTHER;
    if (octet == ':' || octet == '.')
        return PART_OTHER | QUERY;
    return path_class(octet) || memchr("!$&()*+,;=@", octet, 11) ? PART_FIRST | PART_OTHER | QUERY : 0;
}

/* How long "http://host" is where a plain host in lower case and a slash follow; 0: it is not. */
static size_t written_host(struct text href)
{
    static const struct text schemes[] = {{(const unsigned char *)"https://", 8}, {(const unsigned char *)"http://", 7}};
    size_t at = starts_with(href, schemes[0]) ? 8 : starts_with(href, schemes[1]) ? 7 : 0, label = at;
    int dots = 0;
    if (!at)
        return 0;
    for (; at < href.size; at++) {
        unsigned char octet = href.data[at];
        if (octet == '.') {
            if (at == label)
                return 0;
            dots++;
            label = at + 1;
        } else if (!((octet >= 'a' && octet <= 'z') || (octet >= '0' && octet <= '9') || octet == '-'))
            break;
    }
    if (at == href.size || href.data[at] != '/' || !dots || at - label < 2)
        return 0;
    for (size_t place = label; place < at; place++)
        if (href.data[place] < 'a' || href.data[place] > 'z')
            return 0;
    for (size_t place = 0; place + 4 <= at; place++)
        if (!memcmp(href.data + place, "xn--", 4))
            return 0;
    return at;
}

/* As ``target`` of rules/url/urls.py: the URL of a link that no parser changes but for its fragment; NULL without an error:
 * it is none. */
static PyObject *written_target(PyObject *target, struct text origin, struct text folder)
{
    struct text href;
    if (!origin.size || !ascii_of(target, &href))
        return NULL;
    size_t host = written_host(href), at = host, colon = 0;
    int slash = at < href.size && href.data[at] == '/';
    at += (size_t)slash;
    size_t start = at;
    while (at < href.size && written_class(href.data[at]) & PART_FIRST) {
        while (++at < href.size && written_class(href.data[at]) & PART_OTHER)
            colon |= href.data[at] == ':';
        if (at < href.size && href.data[at] == '/')
            at++;
    }
    if (at < href.size && href.data[at] == '?')
        for (at++; at < href.size && written_class(href.data[at]) & QUERY; at++)
            colon |= href.data[at] == ':';
    size_t end = at;
    if (at < href.size && href.data[at] == '#')
        for (at++; at < href.size && href.data[at] >= ' ' && href.data[at] <= '~'; at++)
            ;
    if (at < href.size)
        return NULL;
    if (host)
        return end == href.size ? Py_NewRef(target) : PyUnicode_Substring(target, 0, (Py_ssize_t)end);
    if (!slash && (start == end || href.data[start] == '?' || colon))
        return NULL;
    return joined(slash ? origin : folder, 0, (struct text){href.data + start, end - start});
}

/* " ".join(rel.lower().split()) */
static PyObject *settled_rel(PyObject *rel)
{
    struct text text;
    int plain = ascii_of(rel, &text);
    for (size_t at = 0; plain && at < text.size; at++)
        plain = (text.data[at] >= 'a' && text.data[at] <= 'z') || text.data[at] == '-';
    if (plain)
        return Py_NewRef(rel);
    PyObject *low = PyObject_CallMethod(rel, "lower", NULL), *words = low ? PyObject_CallMethod(low, "split", NULL) : NULL;
    PyObject *blank = words ? PyUnicode_FromString(" ") : NULL, *joined_words = blank ? PyUnicode_Join(blank, words) : NULL;
    Py_XDECREF(blank);
    Py_XDECREF(words);
    Py_XDECREF(low);
    return joined_words;
}

/* targets(found, target, type, origin, folder) -> (links as they are kept, the first that is canonical): what extract()
 * has found; target(href) is asked about a link that a parser might change. */
PyObject *links_targets(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    enum { TARGET, WORDS, RELATION, IS_CANONICAL, LINK_FIELDS };
    struct text origin, folder;
    (void)module;
    if (!takes(count, 5))
        return NULL;
    if (!PyList_Check(given[0]) || !ascii_of(given[3], &origin) || !ascii_of(given[4], &folder)) {
        PyErr_SetString(PyExc_TypeError, "links are a list, origin and folder are of ASCII");
        return NULL;
    }
    PyObject *links = PyList_New(0), *canonical = Py_NewRef(Py_None);
    for (Py_ssize_t place = 0; links && place < PyList_GET_SIZE(given[0]); place++) {
        PyObject *found = PyList_GET_ITEM(given[0], place), *href = field(found, LINK_FIELDS, TARGET), *link = NULL;
        PyObject *url = href ? written_target(href, origin, folder) : NULL;
        if (!url && !PyErr_Occurred())
            url = PyObject_CallOneArg(given[1], href);
        if (url == Py_None) {
            Py_DECREF(url);
            continue;
        }
        if (url && canonical == Py_None && PyTuple_GET_ITEM(found, IS_CANONICAL) == Py_True) {
            Py_DECREF(canonical);
            canonical = Py_NewRef(url);
        }
        PyObject *rel = url ? settled_rel(PyTuple_GET_ITEM(found, RELATION)) : NULL;
        PyObject *number = rel ? PyLong_FromSsize_t(PyList_GET_SIZE(links)) : NULL;
        if (number) {
            PyObject *fields[] = {url, Py_NewRef(PyTuple_GET_ITEM(found, WORDS)), rel, number};
            link = made(given[2], fields, 4);
        } else {
            Py_XDECREF(rel);
            Py_XDECREF(url);
        }
        if (!link || PyList_Append(links, link))
            Py_CLEAR(links);
        Py_XDECREF(link);
    }
    if (!links) {
        Py_DECREF(canonical);
        return NULL;
    }
    return Py_BuildValue("(NN)", links, canonical);
}

/* followed(addresses, type, host, depth, hops, via, priority, flags_of, note) -> list of what is found; flags_of(host) */
PyObject *links_followed(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 9))
        return NULL;
    PyObject *addresses = PySequence_Fast(given[0], "addresses are a list");
    PyObject *none = addresses ? PyLong_FromLong(0) : NULL;
    PyObject *list = none ? PyList_New(0) : NULL;
    for (Py_ssize_t place = 0; list && place < PySequence_Fast_GET_SIZE(addresses); place++) {
        PyObject *address = PySequence_Fast_GET_ITEM(addresses, place), *flags = NULL, *found = NULL;
        PyObject *host = field(address, ADDRESS_FIELDS, HOST);
        int same = host ? host == given[2] || (PyUnicode_Check(host) && PyUnicode_Check(given[2]) &&
                                               !PyUnicode_Compare(host, given[2]))
                        : 0;
        Py_INCREF(address);
        if (host)
            flags = same ? Py_NewRef(none) : PyObject_CallOneArg(given[7], host);
        if (flags) {
            PyObject *fields[FOUND_FIELDS] = {Py_NewRef(address), Py_NewRef(given[3]), Py_NewRef(given[4]),
                                              Py_NewRef(given[5]), Py_NewRef(given[6]), flags, Py_NewRef(given[8])};
            found = made(given[1], fields, FOUND_FIELDS);
        }
        Py_DECREF(address);
        if (!found || PyList_Append(list, found))
            Py_CLEAR(list);
        Py_XDECREF(found);
    }
    Py_XDECREF(none);
    Py_XDECREF(addresses);
    return list;
}

/* --- what of it is news and allowed -------------------------------------------------------------------------------- */

/* news(found, younger, older) -> (those whose key is in neither set, their flags together) */
PyObject *links_news(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3))
        return NULL;
    long flags = 0;
    PyObject *all = PySequence_Fast(given[0], "what is found is a list");
    PyObject *fresh = all ? PyList_New(0) : NULL;
    for (Py_ssize_t place = 0; fresh && place < PySequence_Fast_GET_SIZE(all); place++) {
        PyObject *found = PySequence_Fast_GET_ITEM(all, place), *key = address_field(found, KEY);
        int known = key ? PySet_Contains(given[1], key) : -1;
        if (!known)
            known = PySet_Contains(given[2], key);
        if (!known) {
            flags |= PyLong_AsLong(PyTuple_GET_ITEM(found, FLAGS));
            known = PyErr_Occurred() || PyList_Append(fresh, found) ? -1 : 0;
        }
        if (known < 0)
            Py_CLEAR(fresh);
    }
    Py_XDECREF(all);
    return fresh ? Py_BuildValue("(Nl)", fresh, flags) : NULL;
}

/* The path of a URL without its first slash and its query; 0: it has none that is plain. */
static int path_of(struct text url, struct text *path)
{
    const unsigned char *at = memchr(url.data, ':', url.size), *end = url.data + url.size;
    if (!at || end - at < 3 || at[1] != '/' || at[2] != '/')
        return 0;
    for (at += 3; at < end && *at != '/'; at++)
        if (*at == '?')
            return 0;
    if (at == end)
        return 0;
    at++;
    const unsigned char *query = memchr(at, '?', (size_t)(end - at));
    *path = (struct text){at, (size_t)((query ? query : end) - at)};
    return 1;
}

/* As ``useless`` of rules/url/refused_urls.py; -1 with an error, 2 where Python has to look. */
static int has_extension(struct text path, PyObject *extensions)
{
    char lower[MOST_EXTENSION];
    size_t start = path.size, end, dot;
    while (start && path.data[start - 1] != '/')
        start--;
    for (end = start; end < path.size && path.data[end] != ';';)
        end++;
    for (dot = end; dot > start && path.data[dot - 1] != '.';)
        dot--;
    if (dot == start)
        return 0;
    if (end - dot >= MOST_EXTENSION)
        return 2;
    for (size_t at = dot; at < end; at++)
        lower[at - dot] = (char)(path.data[at] >= 'A' && path.data[at] <= 'Z' ? path.data[at] | 32 : path.data[at]);
    PyObject *extension = PyUnicode_FromStringAndSize(lower, (Py_ssize_t)(end - dot));
    int has = extension ? PySet_Contains(extensions, extension) : -1;
    Py_XDECREF(extension);
    return has;
}

/* Whether a path is none that ``trap`` of rules/url/refused_urls.py could take for endless. */
static int ends(struct text path, struct text host)
{
    struct text parts[MOST_SEGMENTS + 1];
    size_t slashes = 1, count = 0, start = 0;
    const unsigned char *colon = memchr(host.data, ':', host.size);
    if (colon)
        host.size = (size_t)(colon - host.data);
    if (!host.size || host.data[0] == '[' || memmem(path.data, path.size, host.data, host.size))
        return 0;
    for (size_t at = 0; at < path.size; at++)
        slashes += path.data[at] == '/';
    if (slashes < LEAST_SLASHES || slashes > MOST_SEGMENTS)
        return slashes < LEAST_SLASHES;
    for (size_t at = 0; at <= path.size; at++) {
        if (at < path.size && path.data[at] != '/')
            continue;
        struct text part = {path.data + start, at - start};
        for (size_t other = 0; part.size && other < count; other++)
            if (parts[other].size == part.size && !memcmp(parts[other].data, part.data, part.size))
                return 0;
        if (part.size)
            parts[count++] = part;
        start = at + 1;
    }
    return 1;
}

/* A number; one that is too large is as large as can be. */
static long bound_of(PyObject *number)
{
    int overflow;
    long bound = PyLong_AsLongAndOverflow(number, &overflow);
    return overflow > 0 ? LONG_MAX : bound;
}

/* Whether a link is plainly allowed; -1 with an error. */
static int is_plain(PyObject *found, PyObject *hosts, PyObject *extensions, long most_depth, long most_url)
{
    struct text url, path, host;
    PyObject *name = address_field(found, HOST);
    if (!name)
        return -1;
    PyObject *good = PyDict_GetItemWithError(hosts, name);
    if (good != Py_True || !ascii_of(name, &host))
        return PyErr_Occurred() ? -1 : 0;
    long depth = PyLong_AsLong(PyTuple_GET_ITEM(found, DEPTH)), flags = PyLong_AsLong(PyTuple_GET_ITEM(found, FLAGS));
    if (PyErr_Occurred())
        return -1;
    if (flags || depth > most_depth || !ascii_of(address_field(found, URL), &url) || (long)url.size > most_url)
        return 0;
    if (!path_of(url, &path) || !ends(path, host))
        return 0;
    int useless = has_extension(path, extensions);
    return useless < 0 ? -1 : !useless;
}

/* allowed(found, hosts, judge, extensions, most_depth, most_url) -> dict of the first of each key, by key.
 * hosts[host] is True where nothing is against a host; judge(found): the key of one that is not plain, None: refused. */
PyObject *links_allowed(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 6))
        return NULL;
    if (!PyDict_Check(given[1]) || !PyAnySet_Check(given[3])) {
        PyErr_SetString(PyExc_TypeError, "hosts are a dict, extensions a set");
        return NULL;
    }
    long most_depth = bound_of(given[4]), most_url = PyErr_Occurred() ? -1 : bound_of(given[5]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *all = PySequence_Fast(given[0], "what is found is a list");
    PyObject *kept = all ? PyDict_New() : NULL;
    for (Py_ssize_t place = 0; kept && place < PySequence_Fast_GET_SIZE(all); place++) {
        PyObject *found = Py_NewRef(PySequence_Fast_GET_ITEM(all, place)), *key = NULL;
        int plain = is_plain(found, given[1], given[3], most_depth, most_url);
        if (plain > 0)
            key = Py_XNewRef(address_field(found, KEY));
        else if (!plain)
            key = PyObject_CallOneArg(given[2], found);
        if (!key || (key != Py_None && !PyDict_SetDefault(kept, key, found)))
            Py_CLEAR(kept);
        Py_XDECREF(key);
        Py_DECREF(found);
    }
    Py_XDECREF(all);
    return kept;
}

/* Whether a path is written as robots.txt rules are compared (_IS_SPELLED of rules/robots/matcher.py). */
static int is_spelled(struct text path)
{
    for (size_t at = 0; at < path.size; at++) {
        if (path.data[at] < '!' || path.data[at] > '~' || path.data[at] == '#')
            return 0;
        if (path.data[at] != '%')
            continue;
        if (path.size - at < 3 || !memchr("89ABCDEF", path.data[at + 1], 8) || !memchr("0123456789ABCDEF", path.data[at + 2], 16))
            return 0;
        at += 2;
    }
    return 1;
}

/* Places in ``Matcher.index()`` and in a _Pattern (rules/robots/matcher.py). */
enum { EDGES, RANKS, EXACT, PATTERNS, FREE, A_CHARACTER, INDEX_FIELDS };
enum { RANK, NEEDLE, HEAD, PARTS, TAIL, LEAST, CALLS, SCAN, PATTERN_FIELDS };

/* As _matches of rules/robots/matcher.py; -1 with an error. */
static int pattern_matches(PyObject *pattern, struct text path)
{
    struct text head, tail, part;
    PyObject *parts = field(pattern, PATTERN_FIELDS, PARTS);
    if (!parts || !PyTuple_Check(parts) || !ascii_of(PyTuple_GET_ITEM(pattern, HEAD), &head)
        || !ascii_of(PyTuple_GET_ITEM(pattern, TAIL), &tail)) {
        PyErr_SetString(PyExc_TypeError, "no pattern");
        return -1;
    }
    if (head.size + tail.size > path.size || !starts_with(path, head)
        || memcmp(path.data + path.size - tail.size, tail.data, tail.size))
        return 0;
    const unsigned char *at = path.data + head.size, *end = path.data + path.size - tail.size;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(parts); place++) {
        if (!ascii_of(PyTuple_GET_ITEM(parts, place), &part)) {
            PyErr_SetString(PyExc_TypeError, "no pattern");
            return -1;
        }
        at = memmem(at, (size_t)(end - at), part.data, part.size);
        if (!at)
            return 0;
        at += part.size;
    }
    return 1;
}

/* The rank of an edge's interval: bisect_right over the edges; -1 with an error. */
static long rank_of(PyObject *edges, PyObject *ranks, struct text path)
{
    Py_ssize_t low = 0, high = PyList_GET_SIZE(edges);
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        struct text edge;
        if (!ascii_of(PyList_GET_ITEM(edges, middle), &edge)) {
            PyErr_SetString(PyExc_TypeError, "an edge is of ASCII");
            return -1;
        }
        if (compare(path, edge) < 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (low >= PyList_GET_SIZE(ranks)) {
        PyErr_SetString(PyExc_ValueError, "there are fewer ranks than edges");
        return -1;
    }
    return PyLong_AsLong(PyList_GET_ITEM(ranks, low));
}

/* Whether rules allow a path, as Matcher.verdict; 0 as well where that would cost too much, -1 with an error. */
static int rules_allow(PyObject *index, struct text path)
{
    PyObject *exact = PyTuple_GET_ITEM(index, EXACT), *patterns = PyTuple_GET_ITEM(index, PATTERNS);
    long rank = rank_of(PyTuple_GET_ITEM(index, EDGES), PyTuple_GET_ITEM(index, RANKS), path), other;
    if (PyErr_Occurred())
        return -1;
    if (PyDict_GET_SIZE(exact)) {
        PyObject *text = PyUnicode_FromStringAndSize((const char *)path.data, (Py_ssize_t)path.size);
        PyObject *found = text ? PyDict_GetItemWithError(exact, text) : NULL;
        Py_XDECREF(text);
        other = found ? PyLong_AsLong(found) : 0;
        if (PyErr_Occurred())
            return -1;
        rank = other > rank ? other : rank;
    }
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(patterns); place++) {
        PyObject *pattern = PyList_GET_ITEM(patterns, place), *number = field(pattern, PATTERN_FIELDS, RANK);
        other = number ? PyLong_AsLong(number) : 0;
        if (PyErr_Occurred())
            return -1;
        if (other <= rank)
            break;
        if (!place) {
            double work = PyFloat_AsDouble(PyTuple_GET_ITEM(index, FREE));
            work += PyFloat_AsDouble(PyTuple_GET_ITEM(index, A_CHARACTER)) * (double)path.size;
            if (PyErr_Occurred())
                return -1;
            if (work < 0)
                return 0; /* Python knows how */
        }
        int matches = pattern_matches(pattern, path);
        if (matches < 0)
            return -1;
        if (matches) {
            rank = other;
            break;
        }
    }
    return rank & 1 || !rank;
}

/* settled(found, start, front, room, index) -> how many from ``start`` on begin with ``front``, are not it, have no flags,
 * and are allowed by the rules of ``index``; None: there are no rules. */
PyObject *links_settled(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    struct text front, url;
    (void)module;
    if (!takes(count, 5))
        return NULL;
    PyObject *index = given[4] == Py_None ? NULL : given[4];
    if (!PyList_Check(given[0])
        || (index && !(PyTuple_Check(index) && PyTuple_GET_SIZE(index) == INDEX_FIELDS
                       && PyList_Check(PyTuple_GET_ITEM(index, EDGES)) && PyList_Check(PyTuple_GET_ITEM(index, RANKS))
                       && PyDict_Check(PyTuple_GET_ITEM(index, EXACT)) && PyList_Check(PyTuple_GET_ITEM(index, PATTERNS))))) {
        PyErr_SetString(PyExc_TypeError, "what is found is a list, an index of Matcher's kind");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(given[1]), room = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(given[3]), at;
    if (PyErr_Occurred())
        return NULL;
    if (!ascii_of(given[2], &front) || start < 0)
        return PyLong_FromLong(0);
    for (at = start; at < PyList_GET_SIZE(given[0]) && at - start < room; at++) {
        PyObject *found = PyList_GET_ITEM(given[0], at), *address = address_field(found, URL);
        if (!address)
            return NULL;
        long flags = PyLong_AsLong(PyTuple_GET_ITEM(found, FLAGS));
        if (PyErr_Occurred())
            return NULL;
        if (flags || !ascii_of(address, &url) || !starts_with(url, front) || url.size == front.size)
            break;
        if (!index)
            continue;
        struct text path = {url.data + front.size - 1, url.size - front.size + 1};
        if (!is_spelled(path) || starts_with(path, (struct text){(const unsigned char *)"/robots.txt", 11}))
            break;
        int allowed = rules_allow(index, path);
        if (allowed < 0)
            return NULL;
        if (!allowed)
            break;
    }
    return PyLong_FromSsize_t(at - start);
}

/* rows(found, start, arrival, type) -> the rows of those that are of the host of the one at ``start`` and have no flags,
 * up to one that is not so; their arrivals go up from the one given. */
PyObject *links_rows(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 4))
        return NULL;
    Py_ssize_t start = PyLong_AsSsize_t(given[1]);
    unsigned long long arrival = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(given[2]);
    if (PyErr_Occurred())
        return NULL;
    if (!PyList_Check(given[0]) || start < 0) {
        PyErr_SetString(PyExc_TypeError, "what is found is a list, its start a place in it");
        return NULL;
    }
    PyObject *none = PyLong_FromLong(0), *rows = none ? PyList_New(0) : NULL, *host = NULL;
    for (Py_ssize_t at = start; rows && at < PyList_GET_SIZE(given[0]); at++) {
        PyObject *found = PyList_GET_ITEM(given[0], at), *name = address_field(found, HOST), *row = NULL;
        if (!name || !PyUnicode_Check(name)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a host is a text");
            Py_CLEAR(rows);
            break;
        }
        long flags = PyLong_AsLong(PyTuple_GET_ITEM(found, FLAGS));
        if (PyErr_Occurred())
            Py_CLEAR(rows);
        if (!rows || flags || (host && host != name && PyUnicode_Compare(host, name)))
            break;
        host = name; /* which the list keeps */
        PyObject *number = PyLong_FromUnsignedLongLong(arrival++);
        if (number) {
            PyObject *fields[ROW_FIELDS] = {
                Py_NewRef(name), Py_NewRef(address_field(found, KEY)), Py_NewRef(address_field(found, URL)),
                Py_NewRef(PyTuple_GET_ITEM(found, PRIORITY)), number, Py_NewRef(PyTuple_GET_ITEM(found, DEPTH)),
                Py_NewRef(PyTuple_GET_ITEM(found, HOPS)), Py_NewRef(PyTuple_GET_ITEM(found, VIA)), Py_NewRef(none),
                Py_NewRef(none), Py_NewRef(PyTuple_GET_ITEM(found, NOTE))};
            row = made(given[3], fields, ROW_FIELDS);
        }
        if (!row || PyList_Append(rows, row))
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    Py_XDECREF(none);
    return rows;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static unsigned char *put_bits(unsigned char *out, uint64_t value, int bytes)
{
    for (int byte = 0; byte < bytes; byte++)
        *out++ = (unsigned char)(value >> 8 * byte);
    return out;
}

/* A row's place in its queue, behind the prefix: priority, arrival (_PLACE of stores/row_codec.py, big-endian). */
static PyObject *row_place(PyObject *row, struct text prefix)
{
    unsigned long priority = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(row, ROW_PRIORITY));
    unsigned long long arrival = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(row, ROW_ARRIVAL));
    if (PyErr_Occurred())
        return NULL;
    PyObject *place = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)prefix.size + PLACE_BYTES);
    unsigned char *out = place ? (unsigned char *)PyBytes_AS_STRING(place) : NULL;
    if (place) {
        memcpy(out, prefix.data, prefix.size);
        out[prefix.size] = (unsigned char)priority;
        for (int byte = 0; byte < 8; byte++)
            out[prefix.size + 1 + (size_t)byte] = (unsigned char)(arrival >> (56 - 8 * byte));
    }
    return place;
}

/* As ``pack_queued`` of stores/row_codec.py; pack: for texts that are not of ASCII alone. */
static PyObject *packed_row(PyObject *row, PyObject *pack)
{
    static const int TEXTS[] = {ROW_URL, ROW_HOPS, ROW_VIA, ROW_NOTE};
    struct text texts[4];
    size_t size = ROW_HEAD;
    PyObject *key = PyTuple_GET_ITEM(row, ROW_KEY);
    for (int place = 0; place < 4; place++) {
        if (!ascii_of(PyTuple_GET_ITEM(row, TEXTS[place]), &texts[place]))
            return PyObject_CallOneArg(pack, row);
        size += texts[place].size;
    }
    unsigned long depth = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(row, ROW_DEPTH));
    unsigned long tries = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLong(PyTuple_GET_ITEM(row, ROW_TRIES));
    unsigned long flags = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLong(PyTuple_GET_ITEM(row, ROW_FLAGS));
    if (PyErr_Occurred())
        return NULL;
    if (!PyBytes_Check(key) || PyBytes_GET_SIZE(key) != KEY_BYTES || depth > UINT32_MAX || (tries | flags) > UINT16_MAX)
        return PyObject_CallOneArg(pack, row);
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!packed)
        return NULL;
    unsigned char *out = (unsigned char *)PyBytes_AS_STRING(packed);
    memcpy(out, PyBytes_AS_STRING(key), KEY_BYTES);
    out = put_bits(out + KEY_BYTES, depth, 4);
    out = put_bits(put_bits(out, tries, 2), flags, 2);
    for (int place = 0; place < 3; place++)
        out = put_bits(out, texts[place].size, 4);
    for (int place = 0; place < 4; out += texts[place++].size)
        memcpy(out, texts[place].data, texts[place].size);
    return packed;
}

/* put_rows(rows, prefix, last, put, queue, seen, pack) -> dict of the rows at places not behind ``last``, by place.
 * put(key, value, table) is called for the row and for its key. */
PyObject *links_put_rows(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 7))
        return NULL;
    if (!PyBytes_Check(given[1]) || !PyBytes_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "prefix and last place are bytes");
        return NULL;
    }
    struct text prefix = {(unsigned char *)PyBytes_AS_STRING(given[1]), (size_t)PyBytes_GET_SIZE(given[1])};
    struct text last = {(unsigned char *)PyBytes_AS_STRING(given[2]), (size_t)PyBytes_GET_SIZE(given[2])};
    PyObject *rows = PySequence_Fast(given[0], "rows are a list");
    PyObject *empty = rows ? PyBytes_FromStringAndSize("", 0) : NULL, *joined = empty ? PyDict_New() : NULL;
    for (Py_ssize_t at = 0; joined && at < PySequence_Fast_GET_SIZE(rows); at++) {
        PyObject *row = Py_NewRef(PySequence_Fast_GET_ITEM(rows, at)), *place = NULL, *packed = NULL, *done = NULL;
        if (field(row, ROW_FIELDS, ROW_KEY))
            place = row_place(row, prefix);
        if (place)
            packed = packed_row(row, given[6]);
        if (packed) {
            PyObject *arguments[] = {place, packed, given[4]};
            done = PyObject_Vectorcall(given[3], arguments, 3, NULL);
        }
        if (done) {
            PyObject *arguments[] = {PyTuple_GET_ITEM(row, ROW_KEY), empty, given[5]};
            Py_DECREF(done);
            done = PyObject_Vectorcall(given[3], arguments, 3, NULL);
        }
        if (done) {
            struct text behind = {(unsigned char *)PyBytes_AS_STRING(place) + prefix.size, PLACE_BYTES};
            if (compare(behind, last) <= 0) {
                PyObject *within = PyBytes_FromStringAndSize((const char *)behind.data, PLACE_BYTES);
                if (!within || PyDict_SetItem(joined, within, packed))
                    Py_CLEAR(done);
                Py_XDECREF(within);
            }
        }
        if (!done)
            Py_CLEAR(joined);
        Py_XDECREF(done);
        Py_XDECREF(packed);
        Py_XDECREF(place);
        Py_DECREF(row);
    }
    Py_XDECREF(empty);
    Py_XDECREF(rows);
    return joined;
}
