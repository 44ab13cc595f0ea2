/* What the files that know Python share. */
#ifndef CRAWLER_BINDING_H
#define CRAWLER_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "page.h"

extern PyTypeObject head_type;

/* The fields of a record, which lie in ``text``, as an object of their own. */
PyObject *record_fields(const struct record *record, const unsigned char *text);

/* links.c */
PyObject *links_addresses(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_followed(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_news(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_allowed(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_settled(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *links_put_rows(PyObject *module, PyObject *const *given, Py_ssize_t count);

#endif
