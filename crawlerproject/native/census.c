/*
 * Hosts counted as they lie in the store, for inspection/host_table.py, which has the same row by row.
 *
 * A plain host is at the default port, in no request, and has neither a door nor other ports nor a pause beyond what is
 * kept: what its packed state begins with (frontier/hosts/host.py) says all of its row. Every other is handed back.
 */
#include "binding.h"

#include <math.h>
#include <string.h>

/* Where the fields of a packed host are, behind its version; the samples follow, and what stands behind them. */
enum { NEXT_FREE = 1, DELAY = 9, FLOOR = 17, REST_UNTIL = 25, QUEUED = 57, KNOWN = 61, DONE = 65, FAILURES = 69, FLAGS = 75,
       SAMPLES = 76, TIMES = 77, BEHIND_TIMES = 40, VERSION = 6 };
enum { NOT_PLAIN = 8 | 64, STATE_BITS = 1 | 16 | 32, PARKED_BITS = 1, PAUSED_BITS = 17, LIMITED_BITS = 33 };
/* In the order of their names. */
enum { STATE_DONE, STATE_FREE, STATE_IN_FLIGHT, STATE_LEFT_ALONE, STATE_LIMITED, STATE_PARKED, STATE_PAUSED, STATE_RESTING,
       STATE_WAITING, STATES };
/* Columns of a HostRow. */
enum { C_HOST, C_STATE, C_QUEUED, C_DONE, C_KNOWN, C_PACE, C_RESPONSE, C_FREE_IN, C_RESTS, C_FAILURES, C_ETA,
       C_ADDRESS, COLUMNS };

/* What the least ranks of some hosts are gathered in: those before a limit, which is a rank and a name. */
struct first {
    PyObject *found;
    PyObject *limit_name; /* None: there is no limit yet */
    double limit;
};

struct census {
    PyObject *leased, *odd;
    struct first first, slowest;
    double now, latest, leave_alone;
    int column, wanted /* state; -1: any */, queued_only;
    long long states[STATES], queued, resting, parked, chosen;
    double rests, eta, ceiling; /* the first two: -1 when there is none */
};

static double number(const unsigned char *packed, int place)
{
    double value;
    memcpy(&value, packed + place, sizeof value);
    return value;
}

static uint32_t count_of(const unsigned char *packed, int place)
{
    uint32_t value;
    memcpy(&value, packed + place, sizeof value);
    return value;
}

static double larger(double one, double other)
{
    return one > other ? one : other;
}

/* -1 with an error. */
static int is_plain(const struct census *all, PyObject *name, const unsigned char *packed, Py_ssize_t size)
{
    if (size < TIMES + BEHIND_TIMES || packed[0] != VERSION || packed[FLAGS] & NOT_PLAIN ||
        size != TIMES + BEHIND_TIMES + 8 * packed[SAMPLES])
        return 0;
    for (int place = NEXT_FREE; place <= REST_UNTIL; place += 8)
        if (!(fabs(number(packed, place)) <= all->latest))
            return 0;
    if (number(packed, FLOOR) > all->leave_alone || PyUnicode_FindChar(name, ':', 0, PyUnicode_GET_LENGTH(name), 1) >= 0)
        return 0;
    int leased = PySet_GET_SIZE(all->leased) ? PySet_Contains(all->leased, name) : 0;
    return leased < 0 ? -1 : !leased;
}

static int state_of(const unsigned char *packed, uint32_t queued, double now)
{
    int bits = packed[FLAGS] & STATE_BITS;
    if (queued && (bits == PAUSED_BITS || bits == LIMITED_BITS))
        return bits == PAUSED_BITS ? STATE_PAUSED : STATE_LIMITED;
    if (bits == PARKED_BITS)
        return STATE_PARKED;
    if (!queued)
        return STATE_DONE;
    if (number(packed, REST_UNTIL) > now)
        return STATE_RESTING;
    return number(packed, NEXT_FREE) > now ? STATE_WAITING : STATE_FREE;
}

static int add_first(struct first *first, double rank, PyObject *host)
{
    if (first->limit_name != Py_None && rank >= first->limit &&
        (rank > first->limit || PyUnicode_Compare(PyTuple_GET_ITEM(host, 0), first->limit_name) >= 0))
        return 1;
    PyObject *entry = Py_BuildValue("(dOO)", rank, PyTuple_GET_ITEM(host, 0), PyTuple_GET_ITEM(host, 1));
    int failed = !entry || PyList_Append(first->found, entry);
    Py_XDECREF(entry);
    return !failed;
}

static int add_plain(struct census *all, PyObject *host, const unsigned char *packed)
{
    uint32_t queued = count_of(packed, QUEUED);
    int state = state_of(packed, queued, all->now), times = packed[SAMPLES];
    double delay = number(packed, DELAY), rest_until = number(packed, REST_UNTIL), mean = 0.0;
    for (int place = 0; place < times; place++)
        mean += number(packed, TIMES + 8 * place);
    mean = times ? mean / times : 0.0;
    double free_in = larger(0.0, larger(number(packed, NEXT_FREE), rest_until) - all->now);
    double rests = larger(0.0, rest_until - all->now), cycle = delay + mean;
    double eta = queued && state != STATE_PARKED && state != STATE_PAUSED && state != STATE_LIMITED
                     ? free_in + larger(0.0, queued * cycle - delay)
                     : NAN;
    all->states[state]++;
    if (state == STATE_PARKED) {
        all->parked += queued;
    } else if (state == STATE_RESTING) {
        all->resting += queued;
        all->rests = larger(all->rests, rests);
    } else if (state == STATE_FREE || state == STATE_WAITING) {
        all->queued += queued;
        all->eta = larger(all->eta, larger(0.0, free_in + queued * cycle - delay));
        all->ceiling += cycle > 0.0 ? 1.0 / cycle : INFINITY;
        if (!add_first(&all->slowest, -eta, host))
            return 0;
    }
    if ((all->wanted >= 0 && state != all->wanted) || (all->queued_only && !queued))
        return 1;
    all->chosen++;
    uint16_t failures;
    memcpy(&failures, packed + FAILURES, sizeof failures);
    const double columns[COLUMNS] = {
        [C_STATE] = -state, [C_QUEUED] = queued, [C_DONE] = count_of(packed, DONE), [C_KNOWN] = count_of(packed, KNOWN),
        [C_PACE] = delay, [C_RESPONSE] = times ? mean : NAN, [C_FREE_IN] = free_in, [C_RESTS] = rests,
        [C_FAILURES] = failures, [C_ETA] = eta,
    };
    double value = columns[all->column];
    return add_first(&all->first, isnan(value) ? INFINITY : -value, host);
}

static int add_host(struct census *all, PyObject *host)
{
    if (!PyTuple_Check(host) || PyTuple_GET_SIZE(host) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(host, 0)) ||
        !PyBytes_Check(PyTuple_GET_ITEM(host, 1))) {
        PyErr_SetString(PyExc_TypeError, "a host is a name and its packed state");
        return 0;
    }
    PyObject *bytes = PyTuple_GET_ITEM(host, 1);
    const unsigned char *packed = (const unsigned char *)PyBytes_AS_STRING(bytes);
    int plain = is_plain(all, PyTuple_GET_ITEM(host, 0), packed, PyBytes_GET_SIZE(bytes));
    return plain > 0 ? add_plain(all, host, packed) : !plain && !PyList_Append(all->odd, host);
}

static int is_limit(const struct first *first)
{
    return first->limit_name == Py_None || PyUnicode_Check(first->limit_name);
}

static PyObject *seconds_of(double seconds)
{
    return seconds < 0.0 ? Py_NewRef(Py_None) : PyFloat_FromDouble(seconds);
}

static PyObject *counted(struct census *all, PyObject *hosts)
{
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(hosts); place++)
        if (!add_host(all, PyList_GET_ITEM(hosts, place)))
            return NULL;
    PyObject *states = PyTuple_New(STATES);
    for (int state = 0; states && state < STATES; state++) {
        PyObject *count = PyLong_FromLongLong(all->states[state]);
        if (count)
            PyTuple_SET_ITEM(states, state, count);
        else
            Py_CLEAR(states);
    }
    return states ? Py_BuildValue("(OOOLNLNLNLd)", all->odd, all->first.found, all->slowest.found, all->chosen, states,
                                  all->queued, seconds_of(all->eta), all->resting, seconds_of(all->rests), all->parked,
                                  all->ceiling)
                  : NULL;
}

/* hosts, leased, now, LATEST, LEAVE_ALONE_SECONDS, a column and a state by their places, whether only hosts with URLs are
   chosen, and the limits of the first and of the slowest, each a rank and a name (None: no limit yet). Answers: hosts that
   are not plain, the first, the slowest, how many were chosen, the hosts of each state, and what an Outlook has: URLs and
   ETA of hosts that may be asked, URLs and the last end of rests, URLs of parked hosts, answers a second. */
PyObject *census_hosts(PyObject *module, PyObject *given)
{
    struct census all = {.rests = -1.0, .eta = -1.0};
    PyObject *hosts, *answer = NULL;
    (void)module;
    if (!PyArg_ParseTuple(given, "O!O!dddiip(dO)(dO)", &PyList_Type, &hosts, &PyFrozenSet_Type, &all.leased, &all.now,
                          &all.latest, &all.leave_alone, &all.column, &all.wanted, &all.queued_only, &all.first.limit,
                          &all.first.limit_name, &all.slowest.limit, &all.slowest.limit_name))
        return NULL;
    if (all.column < 0 || all.column >= COLUMNS || !is_limit(&all.first) || !is_limit(&all.slowest)) {
        PyErr_SetString(PyExc_ValueError, "no column or no limit");
        return NULL;
    }
    all.odd = PyList_New(0);
    all.first.found = PyList_New(0);
    all.slowest.found = PyList_New(0);
    if (all.odd && all.first.found && all.slowest.found)
        answer = counted(&all, hosts);
    Py_XDECREF(all.odd);
    Py_XDECREF(all.first.found);
    Py_XDECREF(all.slowest.found);
    return answer;
}
