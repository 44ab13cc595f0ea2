/* What the files that know Python share. */
#ifndef CRAWLER_BINDING_H
#define CRAWLER_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "page.h"

extern PyTypeObject head_type;

/* The fields of a record, which lie in ``text``, as an object of their own. */
PyObject *record_fields(const struct record *record, const unsigned char *text);

#endif
