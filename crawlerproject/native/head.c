/*
 * The fields of a WARC record for Python: a sequence of pairs of name and value that is made when it is asked for, as
 * most never is. What a reader asks for is the value of a name. rules/archive/warc_members.py has its like (Fields).
 */
#include <stddef.h>
#include <string.h>

#include "binding.h"

/* Behind the places lies the text that they are of. */
struct place {
    uint16_t name, name_size, value, value_size;
};

struct head {
    PyObject_VAR_HEAD /* its size: bytes of places and text */
    PyObject *pairs;
    size_t count;
    struct place places[];
};

_Static_assert(RECORD_HEAD <= UINT16_MAX, "a place in a head is one of two bytes");

static const unsigned char *text_of(const struct head *head)
{
    return (const unsigned char *)(head->places + head->count);
}

/* Of ASCII alone. */
static PyObject *plain_text(const unsigned char *data, size_t size)
{
    PyObject *text = PyUnicode_New((Py_ssize_t)size, 127);
    if (text && size)
        memcpy(PyUnicode_1BYTE_DATA(text), data, size);
    return text;
}

static PyObject *value_at(const struct head *head, size_t place)
{
    return plain_text(text_of(head) + head->places[place].value, head->places[place].value_size);
}

static PyObject *pairs_of(PyObject *object)
{
    struct head *head = (struct head *)object;
    PyObject *pairs = head->pairs ? NULL : PyTuple_New((Py_ssize_t)head->count);
    for (size_t place = 0; pairs && place < head->count; place++) {
        PyObject *name = plain_text(text_of(head) + head->places[place].name, head->places[place].name_size);
        PyObject *value = name ? value_at(head, place) : NULL;
        PyObject *pair = value ? PyTuple_Pack(2, name, value) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (!pair)
            Py_CLEAR(pairs);
        else
            PyTuple_SET_ITEM(pairs, (Py_ssize_t)place, pair);
    }
    if (pairs)
        head->pairs = pairs;
    return head->pairs; /* borrowed; NULL: no memory */
}

static bool is_named(const struct head *head, size_t place, const char *name, Py_ssize_t size)
{
    const struct place *field = head->places + place;
    return field->name_size == size && !memcmp(text_of(head) + field->name, name, (size_t)size);
}

static PyObject *head_first(PyObject *object, PyObject *wanted)
{
    const struct head *head = (struct head *)object;
    Py_ssize_t size;
    const char *name = PyUnicode_AsUTF8AndSize(wanted, &size);
    for (size_t place = 0; name && place < head->count; place++)
        if (is_named(head, place, name, size))
            return value_at(head, place);
    return name ? PyUnicode_New(0, 0) : NULL;
}

struct page_span record_value(PyObject *fields, const char *name)
{
    const struct head *head = (struct head *)fields;
    Py_ssize_t size = (Py_ssize_t)strlen(name);
    for (size_t place = 0; place < head->count; place++)
        if (is_named(head, place, name, size))
            return (struct page_span){text_of(head) + head->places[place].value, head->places[place].value_size};
    return (struct page_span){NULL, 0};
}

static PyObject *head_all(PyObject *object, PyObject *wanted)
{
    const struct head *head = (struct head *)object;
    Py_ssize_t size;
    const char *name = PyUnicode_AsUTF8AndSize(wanted, &size);
    PyObject *list = name ? PyList_New(0) : NULL;
    for (size_t place = 0; list && place < head->count; place++) {
        if (!is_named(head, place, name, size))
            continue;
        PyObject *value = value_at(head, place);
        if (!value || PyList_Append(list, value))
            Py_CLEAR(list);
        Py_XDECREF(value);
    }
    return list;
}

static Py_ssize_t head_length(PyObject *object)
{
    return (Py_ssize_t)((struct head *)object)->count;
}

static PyObject *head_item(PyObject *object, Py_ssize_t place)
{
    PyObject *pairs = pairs_of(object);
    return pairs ? PySequence_GetItem(pairs, place) : NULL;
}

static PyObject *head_iter(PyObject *object)
{
    PyObject *pairs = pairs_of(object);
    return pairs ? PyObject_GetIter(pairs) : NULL;
}

static PyObject *head_compared(PyObject *object, PyObject *other, int operation)
{
    PyObject *pairs = pairs_of(object);
    PyObject *others = PyObject_TypeCheck(other, &head_type) ? pairs_of(other) : other;
    return pairs && others ? PyObject_RichCompare(pairs, others, operation) : NULL;
}

static Py_hash_t head_hash(PyObject *object)
{
    PyObject *pairs = pairs_of(object);
    return pairs ? PyObject_Hash(pairs) : -1;
}

static PyObject *head_repr(PyObject *object)
{
    PyObject *pairs = pairs_of(object);
    return pairs ? PyObject_Repr(pairs) : NULL;
}

static PyObject *head_reduce(PyObject *object, PyObject *nothing)
{
    PyObject *pairs = pairs_of(object);
    (void)nothing;
    return pairs ? Py_BuildValue("(O(O))", &PyTuple_Type, pairs) : NULL;
}

static void head_free(PyObject *object)
{
    Py_XDECREF(((struct head *)object)->pairs);
    PyObject_Free(object);
}

static PyMethodDef methods[] = {
    {"first", head_first, METH_O, "The first value of a name in lower case, or an empty text."},
    {"all", head_all, METH_O, "Every value of a name in lower case."},
    {"__reduce__", head_reduce, METH_NOARGS, "The pairs."},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods sequence = {.sq_length = head_length, .sq_item = head_item};

PyTypeObject head_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "crawlerproject.native._page.Fields",
    .tp_basicsize = offsetof(struct head, places),
    .tp_itemsize = 1,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = head_free,
    .tp_methods = methods,
    .tp_as_sequence = &sequence,
    .tp_iter = head_iter,
    .tp_richcompare = head_compared,
    .tp_hash = head_hash,
    .tp_repr = head_repr,
};

PyObject *record_fields(const struct record *record, const unsigned char *text)
{
    size_t places = record->count * sizeof(struct place);
    struct head *head = (struct head *)PyObject_NewVar(struct head, &head_type, (Py_ssize_t)(places + record->head_size));
    if (!head)
        return NULL;
    head->pairs = NULL;
    head->count = record->count;
    for (size_t place = 0; place < record->count; place++) {
        const struct record_field *field = record->fields + place;
        head->places[place] = (struct place){
            .name = (uint16_t)(field->name.data - text),
            .name_size = (uint16_t)field->name.size,
            .value = (uint16_t)(field->value.data - text),
            .value_size = (uint16_t)field->value.size,
        };
    }
    memcpy(head->places + head->count, text, record->head_size);
    return (PyObject *)head;
}
