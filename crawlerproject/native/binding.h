/* What the files that know Python share. */
#ifndef CRAWLER_BINDING_H
#define CRAWLER_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "page.h"

extern PyTypeObject head_type;

/* The fields of a record, which lie in ``text``, as an object of their own. */
PyObject *record_fields(const struct record *record, const unsigned char *text);
/* The first value of a name; without data if there is none. */
struct page_span record_value(PyObject *fields, const char *name);

/* tuple.__new__(type, …), whose fields it takes over as far as there are any; NULL with an error. Of links.c. */
PyObject *made(PyObject *type, PyObject *const *fields, Py_ssize_t count);

/* Of member.c. */
PyObject *member_record(PyObject *module, PyObject *data);
PyObject *member_members(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *member_holds(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *member_row(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *member_head(PyObject *module, PyObject *const *given, Py_ssize_t count);
enum { SHA1_BYTES = 20, SHA1_LETTERS = 32 };
/* RFC 4648 6: five bytes are eight letters; ``size`` is a multiple of five. */
void member_base32(const unsigned char *data, size_t size, unsigned char *letters);
/* Of one text or two. False with an error. */
bool member_sha1(const struct page_span *texts, size_t count, unsigned char digests[][SHA1_BYTES]);

/* Of capture.c. */
PyObject *capture_sealed(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *capture_short(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *capture_ids(PyObject *module, PyObject *random);
PyObject *capture_capture(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *capture_log_line(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* census.c */
PyObject *census_hosts(PyObject *module, PyObject *given);

/* links.c */
PyObject *links_addresses(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_targets(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_followed(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_news(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_allowed(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_settled(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_rows(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_put_rows(PyObject *module, PyObject *const *given, Py_ssize_t count);

#endif
