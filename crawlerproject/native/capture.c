/*
 * Captures as they are written: records sealed and packed, all three of a page with its row for the index, and its line in
 * the request log. rules/archive/warc_records.py and crawl/page_completion.py do the same in Python, and do what is left
 * to them here: None is the answer to all that is odd.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

/* --- records --------------------------------------------------------------------------------------------------------- */

static struct page_span span_of(PyObject *bytes)
{
    return (struct page_span){(const unsigned char *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
}

static const char DIGEST_NAME[] = "WARC-Block-Digest: sha1:", LENGTH_NAME[] = "\r\nContent-Length: ";

/* A record: fields with their first line, digest and length, and its block, in two parts. */
struct sealing {
    struct page_span fields, block, body;
    char digits[24];
    size_t length, head, size; /* of the digits, of all before the block, of the record */
};

static struct sealing sealing_of(struct page_span fields, struct page_span block, struct page_span body)
{
    struct sealing sealing = {.fields = fields, .block = block, .body = body}, *made = &sealing;
    made->length = (size_t)snprintf(made->digits, sizeof made->digits, "%zu\r\n\r\n", made->block.size + made->body.size);
    made->head = made->fields.size + sizeof DIGEST_NAME - 1 + SHA1_LETTERS + sizeof LENGTH_NAME - 1 + made->length;
    made->size = made->head + made->block.size + made->body.size + 4;
    return sealing;
}

/* False with an error. */
static bool seal(const struct sealing *given, unsigned char *out)
{
    unsigned char digest[1][SHA1_BYTES], *block = out + given->head;
    memcpy(block, given->block.data, given->block.size);
    memcpy(block + given->block.size, given->body.data, given->body.size);
    memcpy(out + given->size - 4, "\r\n\r\n", 4);
    if (!member_sha1(&(struct page_span){block, given->block.size + given->body.size}, 1, digest))
        return false;
    memcpy(out, given->fields.data, given->fields.size);
    out += given->fields.size;
    memcpy(out, DIGEST_NAME, sizeof DIGEST_NAME - 1);
    out += sizeof DIGEST_NAME - 1;
    member_base32(digest[0], SHA1_BYTES, out);
    out += SHA1_LETTERS;
    memcpy(out, LENGTH_NAME, sizeof LENGTH_NAME - 1);
    memcpy(out + sizeof LENGTH_NAME - 1, given->digits, given->length);
    return true;
}

/* sealed(fields, block, body) -> the record: its fields, its digest and length, and block and body as one block. */
PyObject *capture_sealed(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    struct sealing sealing;
    Py_ssize_t size;
    (void)module;
    if (count != 3 || !PyUnicode_Check(given[0]) || !PyBytes_Check(given[1]) || !PyBytes_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "sealed() takes fields as a text, a block and a body in bytes");
        return NULL;
    }
    const char *fields = PyUnicode_AsUTF8AndSize(given[0], &size);
    if (!fields)
        return NULL;
    sealing = sealing_of((struct page_span){(const unsigned char *)fields, (size_t)size}, span_of(given[1]), span_of(given[2]));
    PyObject *record = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sealing.size);
    if (record && !seal(&sealing, (unsigned char *)PyBytes_AS_STRING(record)))
        Py_CLEAR(record);
    return record;
}

/* short(fields, block) -> the record as a gzip member; None of one that is not short, or not of ASCII. */
PyObject *capture_short(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    unsigned char record[DEFLATE_MOST], member[DEFLATE_ROOM];
    struct sealing sealing;
    Py_ssize_t length;
    (void)module;
    if (count != 2 || !PyUnicode_Check(given[0]) || !PyBytes_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "short() takes fields as a text and a block in bytes");
        return NULL;
    }
    const char *fields = PyUnicode_AsUTF8AndSize(given[0], &length);
    if (!fields)
        return NULL;
    sealing = sealing_of((struct page_span){(const unsigned char *)fields, (size_t)length}, span_of(given[1]),
                         (struct page_span){(const unsigned char *)"", 0});
    if (sealing.size > sizeof record)
        return Py_NewRef(Py_None);
    if (!seal(&sealing, record))
        return NULL;
    size_t size = deflate_member(record, sealing.size, member);
    return size ? PyBytes_FromStringAndSize((const char *)member, (Py_ssize_t)size) : Py_NewRef(Py_None);
}

/* ids(random) -> for each 16 bytes a UUID of version 4 (RFC 9562 5.4) as the id of a record. */
PyObject *capture_ids(PyObject *module, PyObject *random)
{
    static const char form[] = "<urn:uuid:xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx>";
    enum { ID_BYTES = 16, VERSION_DIGIT = 12, VARIANT_DIGIT = 16 };
    (void)module;
    if (!PyBytes_Check(random) || PyBytes_GET_SIZE(random) % ID_BYTES) {
        PyErr_SetString(PyExc_TypeError, "ids() takes 16 bytes for each");
        return NULL;
    }
    Py_ssize_t ids = PyBytes_GET_SIZE(random) / ID_BYTES;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(random);
    PyObject *made = PyTuple_New(ids);
    for (Py_ssize_t id = 0; made && id < ids; id++, bytes += ID_BYTES) {
        PyObject *text = PyUnicode_New(sizeof form - 1, 127);
        if (!text) {
            Py_CLEAR(made);
            break;
        }
        unsigned char *out = PyUnicode_1BYTE_DATA(text);
        for (size_t at = 0, digit = 0; at < sizeof form - 1; at++) {
            unsigned value = bytes[digit / 2 % ID_BYTES] >> (digit % 2 ? 0 : 4) & 15;
            value = digit == VERSION_DIGIT ? 4 : digit == VARIANT_DIGIT ? 8 | (value & 3) : value;
            out[at] = (unsigned char)(form[at] == 'x' ? "0123456789abcdef"[value] : form[at]);
            digit += form[at] == 'x';
        }
        PyTuple_SET_ITEM(made, id, text);
    }
    return made;
}

/* --- texts ----------------------------------------------------------------------------------------------------------- */

#define NAMES(X) \
    X(body) X(cipher) X(delay_seconds) X(duplicate) X(ended_at) X(error) X(ip) X(is_hub) X(is_render) \
    X(kind) X(lease) X(leased_at) X(location) X(mime) X(protocols) X(reason) X(received_bytes) X(rendered) X(request_bytes) \
    X(row) X(started_at) X(status) X(subrequest) X(truncated) X(ttfb_seconds) X(url) X(wire)
#define AS_PLACE(name) OF_##name,
#define AS_TEXT(name) #name,
enum name { NAMES(AS_PLACE) NAME_COUNT };

/* The attribute of an object; NULL with an error. */
static PyObject *attribute(PyObject *object, enum name name)
{
    static const char *const texts[] = {NAMES(AS_TEXT)};
    static PyObject *names[NAME_COUNT];
    if (!names[name] && !(names[name] = PyUnicode_InternFromString(texts[name])))
        return NULL;
    return PyObject_GetAttr(object, names[name]);
}

/* What is being written. Once something is odd, nothing of it counts. */
struct text {
    struct page_buffer buffer;
    bool odd;
};

static void add(struct text *to, const void *data, size_t size)
{
    to->odd |= !page_buffer_add(&to->buffer, data, size);
}

#define ADD(to, literal) add(to, literal, sizeof(literal) - 1)

static struct page_span utf8(struct text *to, PyObject *object)
{
    Py_ssize_t size = 0;
    const char *data = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : NULL;
    to->odd |= !data;
    return (struct page_span){(const unsigned char *)data, data ? (size_t)size : 0};
}

static void add_object(struct text *to, PyObject *object)
{
    struct page_span text = utf8(to, object);
    add(to, text.data, text.size);
}

/* ``one_line`` */
static void add_line(struct text *to, PyObject *object)
{
    size_t start = to->buffer.size;
    add_object(to, object);
    for (size_t at = start; at < to->buffer.size; at++)
        if (to->buffer.data[at] == '\r' || to->buffer.data[at] == '\n')
            to->buffer.data[at] = ' ';
}

static void add_field(struct text *to, const char *name, PyObject *value)
{
    add(to, name, strlen(name));
    add_line(to, value);
    ADD(to, "\r\n");
}

static void add_digits(struct text *to, uint64_t number, unsigned least)
{
    unsigned char digits[20];
    size_t at = sizeof digits;
    for (; number || at == sizeof digits || sizeof digits - at < least; number /= 10)
        digits[--at] = (unsigned char)('0' + number % 10);
    add(to, digits + at, sizeof digits - at);
}

/* An int of Python's that is not negative. */
static void add_int(struct text *to, PyObject *number)
{
    unsigned long long value = number && PyLong_CheckExact(number) ? PyLong_AsUnsignedLongLong(number) : 0;
    to->odd |= !number || !PyLong_CheckExact(number) || PyErr_Occurred();
    add_digits(to, value, 1);
}

/* Of a number that Python rounds to places behind the point, all digits: odd where the last is not beyond doubt. */
static uint64_t rounded(struct text *to, PyObject *number, double scale)
{
    const double most = 1e11, doubt = 1e-3; /* numbers below are exact to a hundredth of it */
    double scaled = number && PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) * scale : -1;
    if (!(scaled >= 0 && scaled < most) || signbit(scaled) || fabs(scaled - floor(scaled) - 0.5) < doubt) {
        to->odd = true;
        return 0;
    }
    return (uint64_t)rint(scaled);
}

/* ``.3f`` */
static void add_fixed(struct text *to, PyObject *number)
{
    uint64_t thousandths = rounded(to, number, 1e3);
    add_digits(to, thousandths / 1000, 1);
    ADD(to, ".");
    add_digits(to, thousandths % 1000, 3);
}

/* round(…, 6) as JSON has it; nothing below a hundred thousandth, which is written with an exponent. */
static void add_seconds(struct text *to, PyObject *number)
{
    uint64_t micros = rounded(to, number, 1e6);
    to->odd |= micros && micros < 10;
    add_digits(to, micros / 1000000, 1);
    ADD(to, ".");
    add_digits(to, micros % 1000000, 6);
    while (to->buffer.size > 2 && to->buffer.data[to->buffer.size - 1] == '0' && to->buffer.data[to->buffer.size - 2] != '.')
        to->buffer.size--;
}

enum { DATE_SIZE = 27 };

/* ``warc_date`` of the years 1970 to 9999: the days of the calendar are counted from March on. */
static void add_date(struct text *to, double epoch_seconds)
{
    double seconds, micros = rint(modf(epoch_seconds, &seconds) * 1e6);
    if (!(epoch_seconds >= 0 && epoch_seconds < 253402300800.0) || micros >= 1e6) {
        to->odd = true;
        return;
    }
    uint64_t second = (uint64_t)seconds, days = second / 86400 + 719468, era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    add_digits(to, year + era * 400 + (month >= 10), 4);
    ADD(to, "-");
    add_digits(to, month < 10 ? month + 3 : month - 9, 2);
    ADD(to, "-");
    add_digits(to, of_year - (153 * month + 2) / 5 + 1, 2);
    ADD(to, "T");
    add_digits(to, second / 3600 % 24, 2);
    ADD(to, ":");
    add_digits(to, second / 60 % 60, 2);
    ADD(to, ":");
    add_digits(to, second % 60, 2);
    ADD(to, ".");
    add_digits(to, (uint64_t)micros, 6);
    ADD(to, "Z");
}

static double seconds_of(struct text *to, PyObject *number)
{
    to->odd |= !number || !PyFloat_CheckExact(number);
    return to->odd ? 0 : PyFloat_AS_DOUBLE(number);
}

static void add_json(struct text *to, struct page_span text)
{
    static const char letters[] = "btn\0fr"; /* from 8 on */
    ADD(to, "\"");
    for (size_t at = 0, start = 0; at <= text.size; at++) {
        if (at < text.size && text.data[at] >= ' ' && text.data[at] != '"' && text.data[at] != '\\')
            continue;
        add(to, text.data + start, at - start);
        start = at + 1;
        if (at == text.size)
            break;
        unsigned char letter = text.data[at], hex[6] = {'\\', 'u', '0', '0', '0', '0'};
        bool named = letter >= ' ' || (letter >= 8 && letter <= 13 && letters[letter - 8]);
        hex[1] = !named ? 'u' : letter >= ' ' ? letter : (unsigned char)letters[letter - 8];
        hex[4] = (unsigned char)('0' + (letter >> 4));
        hex[5] = (unsigned char)"0123456789abcdef"[letter & 15];
        add(to, hex, named ? 2 : 6);
    }
    ADD(to, "\"");
}

static void add_string(struct text *to, PyObject *text)
{
    add_json(to, utf8(to, text));
}

static void add_text(struct text *to, const char *name, PyObject *text)
{
    add(to, name, strlen(name));
    add_string(to, text);
}

/* ``digest_text`` */
static void add_digest(struct text *to, PyObject *digest)
{
    unsigned char letters[SHA1_LETTERS];
    if (!PyBytes_Check(digest) || PyBytes_GET_SIZE(digest) != SHA1_BYTES) {
        to->odd = true;
        return;
    }
    member_base32((const unsigned char *)PyBytes_AS_STRING(digest), SHA1_BYTES, letters);
    add_json(to, (struct page_span){letters, SHA1_LETTERS});
}

/* null of an empty text, and of None. */
static void add_known(struct text *to, const char *name, PyObject *text)
{
    bool known = text && text != Py_None && !(PyUnicode_Check(text) && !PyUnicode_GET_LENGTH(text));
    if (known || !text)
        add_text(to, name, text);
    else {
        add(to, name, strlen(name));
        ADD(to, "null");
    }
}

/* --- a capture ------------------------------------------------------------------------------------------------------- */

enum { COMPRESSION_LEVEL = 2 }; /* as warc_records.py has it */

struct packed {
    PyObject *bytes; /* NULL: it lies here */
    unsigned char room[DEFLATE_ROOM];
    size_t size;
};

static const unsigned char *packed_data(const struct packed *member)
{
    return member->bytes ? (const unsigned char *)PyBytes_AS_STRING(member->bytes) : member->room;
}

/* ``igzip_lib.compress``; NULL with an error. */
static PyObject *compressed(PyObject *record, int level)
{
    static PyObject *compress, *gzip;
    if (!gzip) {
        PyObject *library = PyImport_ImportModule("isal.igzip_lib");
        compress = library ? PyObject_GetAttrString(library, "compress") : NULL;
        gzip = compress ? PyObject_GetAttrString(library, "COMP_GZIP") : NULL;
        Py_XDECREF(library);
    }
    PyObject *number = gzip ? PyLong_FromLong(level) : NULL, *made = NULL;
    if (number)
        made = PyObject_Vectorcall(compress, (PyObject *[]){record, number, gzip}, 3, NULL);
    Py_XDECREF(number);
    if (made && !PyBytes_CheckExact(made))
        Py_CLEAR(made);
    return made;
}

/* ``make_member``; false where it fails. */
static bool pack(const struct text *fields, struct page_span block, struct page_span body, int level, struct packed *member)
{
    struct page_span said = {fields->buffer.data, fields->buffer.size};
    struct sealing sealing = sealing_of(said, block, body);
    unsigned char record[DEFLATE_MOST];
    member->bytes = NULL;
    if (fields->odd)
        return false;
    if (!body.size && sealing.size <= sizeof record) {
        if (!seal(&sealing, record))
            return false;
        if ((member->size = deflate_member(record, sealing.size, member->room)))
            return true;
    }
    PyObject *whole = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sealing.size);
    if (whole && seal(&sealing, (unsigned char *)PyBytes_AS_STRING(whole)))
        member->bytes = compressed(whole, level);
    Py_XDECREF(whole);
    member->size = member->bytes ? (size_t)PyBytes_GET_SIZE(member->bytes) : 0;
    return member->bytes != NULL;
}

enum place {
    TYPE, WIRE, CONTEXT, DIGEST, ORIGINAL, WARCINFO_ID, IDS, START, HEAD, LEVEL, MIME, IP, IDENTIFIED, REDIRECT, PLACES
};
enum id { REQUEST_ID, RESPONSE_ID, METADATA_ID, ID_COUNT };
enum context { URL, VIA, HOPS, DELAY_SECONDS, WAITED_SECONDS, SAMPLE, EXTRA, CONTEXT_FIELDS };
enum original { ORIGINAL_ID, ORIGINAL_URL, ORIGINAL_DATE, PROFILE, ORIGINAL_FIELDS };

/* What of a Wire goes into the records. */
enum wire { REQUEST, BODY, STATUS, PROTOCOLS, CIPHER, TRUNCATED, STARTED_AT, ENDED_AT, WIRE_PARTS };
static const enum name WIRE_NAMES[] = {OF_request_bytes, OF_body,      OF_status,     OF_protocols,
                                       OF_cipher,        OF_truncated, OF_started_at, OF_ended_at};

struct building {
    PyObject *const *given, *const *ids;
    PyObject *wire[WIRE_PARTS];
    struct text text, block; /* fields of a record; the block of the metadata, and the row */
    unsigned char date[DATE_SIZE], payload[SHA1_LETTERS];
    struct packed request, response, metadata;
};

static PyObject *context_of(const struct building *of, enum context place)
{
    return PyTuple_GET_ITEM(of->given[CONTEXT], place);
}

static void begin(struct building *of, const char *type, enum id id)
{
    of->text.buffer.size = 0;
    ADD(&of->text, "WARC/1.1\r\nWARC-Type: ");
    add(&of->text, type, strlen(type));
    add_field(&of->text, "\r\nWARC-Record-ID: ", of->ids[id]);
    ADD(&of->text, "WARC-Date: ");
    add(&of->text, of->date, DATE_SIZE);
    add_field(&of->text, "\r\nWARC-Target-URI: ", context_of(of, URL));
    add_field(&of->text, "WARC-Warcinfo-ID: ", of->given[WARCINFO_ID]);
    if (id != METADATA_ID && PyUnicode_GET_LENGTH(of->given[IP]))
        add_field(&of->text, "WARC-IP-Address: ", of->given[IP]);
}

/* ``_response_fields`` */
static void add_response_fields(struct building *of)
{
    struct text *to = &of->text;
    PyObject *original = of->given[ORIGINAL], *protocols = of->wire[PROTOCOLS];
    to->odd |= !PyTuple_CheckExact(protocols);
    for (Py_ssize_t at = 0; !to->odd && at < PyTuple_GET_SIZE(protocols); at++) {
        ADD(to, "WARC-Protocol: ");
        add_object(to, PyTuple_GET_ITEM(protocols, at));
        ADD(to, "\r\n");
    }
    if (PyObject_IsTrue(of->wire[CIPHER])) {
        ADD(to, "WARC-Cipher-Suite: ");
        add_object(to, of->wire[CIPHER]);
        ADD(to, "\r\n");
    }
    if (original != Py_None) {
        ADD(to, "WARC-Profile: ");
        add_object(to, PyTuple_GET_ITEM(original, PROFILE));
        ADD(to, "\r\nWARC-Refers-To: ");
        add_object(to, PyTuple_GET_ITEM(original, ORIGINAL_ID));
        add_field(to, "\r\nWARC-Refers-To-Target-URI: ", PyTuple_GET_ITEM(original, ORIGINAL_URL));
        ADD(to, "WARC-Refers-To-Date: ");
        add_object(to, PyTuple_GET_ITEM(original, ORIGINAL_DATE));
        ADD(to, "\r\n");
        struct page_span profile = utf8(to, PyTuple_GET_ITEM(original, PROFILE));
        static const char not_modified[] = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
        if (profile.size == sizeof not_modified - 1 && !memcmp(profile.data, not_modified, profile.size))
            return; /* a 304 has no payload of its own */
    }
    ADD(to, "WARC-Payload-Digest: sha1:");
    add(to, of->payload, SHA1_LETTERS);
    ADD(to, "\r\n");
    if (PyUnicode_GET_LENGTH(of->given[IDENTIFIED])) {
        ADD(to, "WARC-Identified-Payload-Type: ");
        add_object(to, of->given[IDENTIFIED]);
        ADD(to, "\r\n");
    }
    if (original != Py_None)
        ADD(to, "WARC-Truncated: length\r\n");
    else if (PyObject_IsTrue(of->wire[TRUNCATED])) {
        ADD(to, "WARC-Truncated: ");
        add_object(to, of->wire[TRUNCATED]);
        ADD(to, "\r\n");
    }
}

/* ``_metadata_block`` */
static void add_metadata(struct building *of)
{
    struct text *to = &of->block;
    double took = rint((seconds_of(to, of->wire[ENDED_AT]) - seconds_of(to, of->wire[STARTED_AT])) * 1000);
    PyObject *extra = context_of(of, EXTRA);
    if (!PyUnicode_Check(context_of(of, VIA)) || PyUnicode_GET_LENGTH(context_of(of, VIA)))
        add_field(to, "via: ", context_of(of, VIA));
    ADD(to, "hopsFromSeed: ");
    add_object(to, context_of(of, HOPS));
    ADD(to, "\r\nfetchTimeMs: ");
    to->odd |= !(fabs(took) < 1e15);
    add_digits(to, took > 0 && !to->odd ? (uint64_t)took : 0, 1);
    ADD(to, "\r\n");
    if (context_of(of, DELAY_SECONDS) != Py_None) {
        ADD(to, "politenessDelaySeconds: ");
        add_fixed(to, context_of(of, DELAY_SECONDS));
        ADD(to, "\r\n");
    }
    if (context_of(of, WAITED_SECONDS) != Py_None) {
        ADD(to, "politenessWaitedSeconds: ");
        add_fixed(to, context_of(of, WAITED_SECONDS));
        ADD(to, "\r\n");
    }
    to->odd |= !PyList_CheckExact(extra) && !PyTuple_CheckExact(extra);
    for (Py_ssize_t at = 0; !to->odd && at < PySequence_Fast_GET_SIZE(extra); at++) {
        PyObject *note = PySequence_Fast_GET_ITEM(extra, at);
        if (!PyTuple_CheckExact(note) || PyTuple_GET_SIZE(note) != 2) {
            to->odd = true;
            return;
        }
        add_object(to, PyTuple_GET_ITEM(note, 0));
        add_field(to, ": ", PyTuple_GET_ITEM(note, 1));
    }
}

/* ``index_rows.pack`` */
static void add_row(struct building *of, uint64_t start)
{
    struct text *to = &of->block, url = {0};
    bool revisit = of->given[ORIGINAL] != Py_None;
    uint64_t offset = start + of->request.size;
    to->buffer.size = 0;
    ADD(to, "{\"start\":");
    add_digits(to, start, 1);
    ADD(to, ",\"end\":");
    add_digits(to, offset + of->response.size + of->metadata.size, 1);
    ADD(to, ",\"url\":");
    add_line(&url, context_of(of, URL));
    add_json(to, (struct page_span){url.buffer.data, url.buffer.size});
    to->odd |= url.odd;
    free(url.buffer.data);
    ADD(to, ",\"timestamp\":\"");
    for (size_t at = 0; at < 19; at++)
        if (of->date[at] >= '0' && of->date[at] <= '9')
            add(to, of->date + at, 1);
    ADD(to, "\",\"mime\":");
    if (revisit)
        ADD(to, "\"warc/revisit\"");
    else
        add_json(to, PyUnicode_GET_LENGTH(of->given[MIME]) ? utf8(to, of->given[MIME])
                                                           : (struct page_span){(const unsigned char *)"unk", 3});
    add_text(to, ",\"identified\":", of->given[IDENTIFIED]);
    ADD(to, ",\"status\":");
    add_int(to, of->wire[STATUS]);
    ADD(to, ",\"digest\":\"");
    add(to, of->payload, SHA1_LETTERS);
    ADD(to, "\",\"offset\":");
    add_digits(to, offset, 1);
    ADD(to, ",\"length\":");
    add_digits(to, of->response.size, 1);
    add_text(to, ",\"redirect\":", of->given[REDIRECT]);
    if (revisit || of->wire[TRUNCATED] == Py_None)
        ADD(to, ",\"truncated\":\"\"");
    else
        add_text(to, ",\"truncated\":", of->wire[TRUNCATED]);
    ADD(to, "}\n");
}

static bool build(struct building *of, uint64_t start)
{
    PyObject *const *given = of->given;
    struct text *to = &of->text;
    bool revisit = given[ORIGINAL] != Py_None;
    struct page_span none = {(const unsigned char *)"", 0}, body = revisit ? none : span_of(of->wire[BODY]);
    add_date(to, seconds_of(to, of->wire[STARTED_AT]));
    if (to->odd || to->buffer.size != DATE_SIZE)
        return false;
    memcpy(of->date, to->buffer.data, DATE_SIZE);
    member_base32((const unsigned char *)PyBytes_AS_STRING(given[DIGEST]), SHA1_BYTES, of->payload);

    begin(of, "request", REQUEST_ID);
    add_field(to, "WARC-Concurrent-To: ", of->ids[RESPONSE_ID]);
    ADD(to, "Content-Type: application/http; msgtype=request\r\n");
    if (!pack(to, span_of(of->wire[REQUEST]), none, COMPRESSION_LEVEL, &of->request))
        return false;

    begin(of, revisit ? "revisit" : "response", RESPONSE_ID);
    add_field(to, "WARC-Concurrent-To: ", of->ids[REQUEST_ID]);
    add_field(to, "WARC-Concurrent-To: ", of->ids[METADATA_ID]);
    add_response_fields(of);
    ADD(to, "Content-Type: application/http; msgtype=response\r\n");
    if (!pack(to, span_of(given[HEAD]), body, (int)PyLong_AsLong(given[LEVEL]), &of->response))
        return false;

    begin(of, "metadata", METADATA_ID);
    add_field(to, "WARC-Concurrent-To: ", of->ids[RESPONSE_ID]);
    ADD(to, "Content-Type: application/warc-fields\r\n");
    add_metadata(of);
    if (of->block.odd
        || !pack(to, (struct page_span){of->block.buffer.data, of->block.buffer.size}, none, COMPRESSION_LEVEL, &of->metadata))
        return false;
    add_row(of, start);
    return !of->block.odd;
}

static PyObject *capture_object(const struct building *of, uint64_t start)
{
    const struct packed *const members[] = {&of->request, &of->response, &of->metadata};
    size_t size = of->request.size + of->response.size + of->metadata.size, at = 0;
    PyObject *all = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    for (size_t member = 0; all && member < 3; at += members[member++]->size)
        memcpy(PyBytes_AS_STRING(all) + at, packed_data(members[member]), members[member]->size);
    PyObject *fields[] = {
        all,
        Py_NewRef(of->ids[RESPONSE_ID]),
        PyUnicode_DecodeASCII((const char *)of->date, DATE_SIZE, NULL),
        PyBytes_FromStringAndSize((const char *)of->block.buffer.data, (Py_ssize_t)of->block.buffer.size),
        PyLong_FromUnsignedLongLong(start + of->request.size),
        PyLong_FromSize_t(of->response.size),
    };
    for (size_t place = 0; place < sizeof fields / sizeof *fields; place++)
        if (!fields[place]) {
            for (place = 0; place < sizeof fields / sizeof *fields; place++)
                Py_XDECREF(fields[place]);
            return NULL;
        }
    return made(of->given[TYPE], fields, sizeof fields / sizeof *fields);
}

/* capture(type, wire, context, digest, original, warcinfo_id, ids, start, head, level, mime, ip, identified, redirect)
 * -> the Capture; None where something is odd. */
PyObject *capture_capture(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    static const enum place texts[] = {WARCINFO_ID, MIME, IP, IDENTIFIED, REDIRECT};
    struct building of;
    PyObject *capture = NULL;
    (void)module;
    if (count != PLACES || !PyTuple_Check(given[CONTEXT]) || PyTuple_GET_SIZE(given[CONTEXT]) != CONTEXT_FIELDS
        || !PyBytes_Check(given[DIGEST]) || PyBytes_GET_SIZE(given[DIGEST]) != SHA1_BYTES || !PyBytes_Check(given[HEAD])
        || !PyTuple_CheckExact(given[IDS]) || PyTuple_GET_SIZE(given[IDS]) != ID_COUNT || !PyLong_Check(given[LEVEL]) || !PyLong_Check(given[START])
        || !(given[ORIGINAL] == Py_None
             || (PyTuple_Check(given[ORIGINAL]) && PyTuple_GET_SIZE(given[ORIGINAL]) == ORIGINAL_FIELDS)))
        return Py_NewRef(Py_None);
    for (size_t text = 0; text < sizeof texts / sizeof *texts; text++)
        if (!PyUnicode_Check(given[texts[text]]))
            return Py_NewRef(Py_None);
    of.given = given;
    of.ids = &PyTuple_GET_ITEM(given[IDS], 0);
    memset(of.wire, 0, sizeof of.wire);
    of.text = of.block = (struct text){0};
    of.request.bytes = of.response.bytes = of.metadata.bytes = NULL;
    uint64_t start = PyLong_AsUnsignedLongLong(given[START]);
    bool right = !PyErr_Occurred();
    for (size_t part = 0; right && part < WIRE_PARTS; part++)
        right = (of.wire[part] = attribute(given[WIRE], WIRE_NAMES[part])) != NULL;
    right = right && PyBytes_CheckExact(of.wire[REQUEST]) && PyBytes_CheckExact(of.wire[BODY]);
    if (right && build(&of, start))
        capture = capture_object(&of, start);
    for (size_t part = 0; part < WIRE_PARTS; part++)
        Py_XDECREF(of.wire[part]);
    Py_XDECREF(of.request.bytes);
    Py_XDECREF(of.response.bytes);
    Py_XDECREF(of.metadata.bytes);
    free(of.text.buffer.data);
    free(of.block.buffer.data);
    if (!capture) { /* Python does it once more, and says what is wrong if something is */
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return capture;
}

/* --- the line of a page in the request log --------------------------------------------------------------------------- */

/* What of a result, its lease, its exchange and its duplicate goes there; of the exchange and the duplicate, if any. */
enum part {
    LEASE, ROW, OF_WIRE, IS_RENDER, RENDERED, DUPLICATE, REASON, MIME_TYPE, LOCATION, ERROR, RESULT_PARTS,
    LEASED_AT = RESULT_PARTS, DELAY, KIND, SUBREQUEST, LEASE_PARTS,
    STARTED = LEASE_PARTS, ENDED, ADDRESS, ANSWERED, RECEIVED, FIRST_BYTE, CUT, EXCHANGE_PARTS,
    LIKE = EXCHANGE_PARTS, LIKE_URL, PARTS
};
static const enum name PART_NAMES[] = {
    OF_lease, OF_row, OF_wire, OF_is_render, OF_rendered, OF_duplicate, OF_reason, OF_mime, OF_location, OF_error,
    OF_leased_at, OF_delay_seconds, OF_kind, OF_subrequest,
    OF_started_at, OF_ended_at, OF_ip, OF_status, OF_received_bytes, OF_ttfb_seconds, OF_truncated,
    OF_kind, OF_url,
};
enum row { ROW_HOST = 0, ROW_URL = 2, ROW_DEPTH = 5, ROW_HOPS, ROW_VIA, ROW_TRIES, ROW_FIELDS = 11 };
enum written { FILENAME, OFFSET, LENGTH, PAYLOAD, RECORD_ID, DATE, WRITTEN_FIELDS };

static bool get(PyObject **parts, PyObject *object, size_t from, size_t to)
{
    for (size_t part = from; part < to; part++)
        if (!(parts[part] = attribute(object, PART_NAMES[part])))
            return false;
    return true;
}

static double or_else(struct text *to, PyObject *first, PyObject *second)
{
    double value = first ? seconds_of(to, first) : 0;
    return value != 0 ? value : seconds_of(to, second);
}

static void add_or_null(struct text *to, const char *name, PyObject *value, void (*write)(struct text *, PyObject *))
{
    add(to, name, strlen(name));
    if (value && value != Py_None)
        write(to, value);
    else
        ADD(to, "null");
}

static void add_log_line(struct text *to, PyObject *const *parts, PyObject *written, PyObject *now, bool is_hub)
{
    PyObject *const *row = &PyTuple_GET_ITEM(parts[ROW], 0);
    PyObject *const *place = written == Py_None ? NULL : &PyTuple_GET_ITEM(written, 0);
    double started = or_else(to, parts[STARTED], parts[LEASED_AT]), ended = or_else(to, parts[ENDED], now);
    PyObject *took = PyFloat_FromDouble(ended - started);
    ADD(to, "{\"time\":\"");
    add_date(to, started);
    ADD(to, "\",\"end\":\"");
    add_date(to, ended);
    add_text(to, "\",\"url\":", row[ROW_URL]);
    if (is_hub)
        ADD(to, ",\"method\":\"POST\"");
    else
        ADD(to, ",\"method\":\"GET\"");
    bool answered = parts[ANSWERED] && PyObject_IsTrue(parts[ANSWERED]);
    add_or_null(to, ",\"status\":", answered ? parts[ANSWERED] : NULL, add_int);
    add_text(to, ",\"reason\":", parts[REASON]);
    add_text(to, ",\"host\":", row[ROW_HOST]);
    add_known(to, ",\"ip\":", parts[ADDRESS] ? parts[ADDRESS] : Py_None);
    add_known(to, ",\"via\":", row[ROW_VIA]);
    add_or_null(to, ",\"depth\":", row[ROW_DEPTH], add_int);
    add_text(to, ",\"hop\":", row[ROW_HOPS]);
    add_known(to, ",\"mime\":", parts[MIME_TYPE]);
    ADD(to, ",\"bytes\":");
    if (parts[RECEIVED])
        add_int(to, parts[RECEIVED]);
    else
        ADD(to, "0");
    add_known(to, ",\"location\":", parts[LOCATION]);
    add_or_null(to, ",\"ttfb_seconds\":", parts[FIRST_BYTE], add_seconds);
    add_or_null(to, ",\"seconds\":", took, add_seconds);
    add_or_null(to, ",\"delay_seconds\":", parts[DELAY], add_seconds);
    add_or_null(to, ",\"digest\":", place && PyObject_IsTrue(place[PAYLOAD]) ? place[PAYLOAD] : NULL, add_digest);
    add_or_null(to, ",\"warc\":", place ? place[FILENAME] : NULL, add_string);
    add_or_null(to, ",\"offset\":", place ? place[OFFSET] : NULL, add_int);
    add_or_null(to, ",\"length\":", place ? place[LENGTH] : NULL, add_int);
    add_known(to, ",\"error\":", parts[ERROR]);
    add_or_null(to, ",\"tries\":", row[ROW_TRIES], add_int);
    add_known(to, ",\"truncated\":", parts[CUT] ? parts[CUT] : Py_None);
    ADD(to, ",\"rendered\":false");
    add_or_null(to, ",\"duplicate\":", parts[LIKE], add_string);
    add_known(to, ",\"duplicate_of\":", parts[LIKE_URL] ? parts[LIKE_URL] : Py_None);
    ADD(to, "}\n");
    to->odd |= !took;
    Py_XDECREF(took);
}

/* log_line(result, written, now) -> the line of a page that was not in the browser; None of others, and of odd ones. */
PyObject *capture_log_line(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    PyObject *parts[PARTS] = {0}, *line = NULL, *hub = NULL;
    struct text text = {0};
    (void)module;
    bool right = count == 3 && (given[1] == Py_None || (PyTuple_Check(given[1]) && PyTuple_GET_SIZE(given[1]) == WRITTEN_FIELDS))
                 && get(parts, given[0], 0, RESULT_PARTS) && parts[RENDERED] == Py_None && parts[IS_RENDER] == Py_False
                 && PyTuple_Check(parts[ROW]) && PyTuple_GET_SIZE(parts[ROW]) == ROW_FIELDS
                 && get(parts, parts[LEASE], RESULT_PARTS, LEASE_PARTS) && parts[SUBREQUEST] == Py_None
                 && (parts[OF_WIRE] == Py_None || get(parts, parts[OF_WIRE], LEASE_PARTS, EXCHANGE_PARTS))
                 && (parts[DUPLICATE] == Py_None || get(parts, parts[DUPLICATE], EXCHANGE_PARTS, PARTS))
                 && (hub = attribute(parts[KIND], OF_is_hub));
    if (right) {
        add_log_line(&text, parts, given[1], given[2], hub == Py_True);
        if (!text.odd)
            line = PyBytes_FromStringAndSize((const char *)text.buffer.data, (Py_ssize_t)text.buffer.size);
    }
    for (size_t part = 0; part < PARTS; part++)
        Py_XDECREF(parts[part]);
    Py_XDECREF(hub);
    free(text.buffer.data);
    PyErr_Clear();
    return line ? line : Py_NewRef(Py_None);
}
