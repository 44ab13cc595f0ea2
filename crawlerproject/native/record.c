/*
 * The head of a WARC record, as rules/archive/warc_members.py has it (_member), of those that are as they should be:
 * fields of printable ASCII, the length right, two line breaks at the end. All others Python judges.
 */
#include "page.h"

#include <string.h>

static const unsigned char VERSION[] = "WARC/1.", LENGTH[] = "content-length";
enum { VERSION_SIZE = sizeof VERSION - 1, LENGTH_SIZE = sizeof LENGTH - 1, LENGTH_DIGITS = 18, BREAKS = 4 };

static struct page_span stripped(unsigned char *from, const unsigned char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    return (struct page_span){from, (size_t)(to - from)};
}

/* The value of a number in digits; SIZE_MAX of anything else. */
static size_t number(struct page_span digits)
{
    size_t value = 0;
    if (!digits.size || digits.size > LENGTH_DIGITS)
        return SIZE_MAX;
    for (size_t at = 0; at < digits.size; at++) {
        if (digits.data[at] < '0' || digits.data[at] > '9')
            return SIZE_MAX;
        value = value * 10 + (size_t)(digits.data[at] - '0');
    }
    return value;
}

/* A line is printable ASCII and tabs; its name is written in lower case. */
static bool field_read(unsigned char *line, unsigned char *end, struct record_field *field)
{
    unsigned char *colon = NULL;
    for (unsigned char *at = line; at < end; at++) {
        if ((*at < ' ' && *at != '\t') || *at > '~')
            return false;
        if (!colon && *at == ':')
            colon = at;
        else if (!colon && *at >= 'A' && *at <= 'Z')
            *at += 'a' - 'A';
    }
    field->name = stripped(line, colon ? colon : end);
    field->value = colon ? stripped(colon + 1, end) : (struct page_span){end, 0};
    return true;
}

/* Where a line ends, if its first CR is before an LF; NULL if not. */
static const unsigned char *line_end(const unsigned char *line, const unsigned char *limit)
{
    const unsigned char *end = memchr(line, '\r', (size_t)(limit - line));
    return end && limit - end > 1 && end[1] == '\n' ? end : NULL;
}

bool record_read(const unsigned char *data, size_t size, unsigned char *head, size_t room, struct record *record)
{
    const unsigned char *limit = data + (size < room ? size : room), *end, *next;
    size_t length = SIZE_MAX;
    if (size < VERSION_SIZE + BREAKS || memcmp(data, VERSION, VERSION_SIZE)
        || memcmp(data + size - BREAKS, "\r\n\r\n", BREAKS) || !(end = line_end(data, limit)))
        return false;
    memcpy(head, data, (size_t)(end - data));
    for (record->count = 0; (next = line_end(end + 2, limit)) && next > end + 2; record->count++) {
        struct record_field *field = record->fields + record->count;
        memcpy(head + (end - data), end, (size_t)(next - end));
        if (record->count == RECORD_FIELDS || !field_read(head + (end + 2 - data), head + (next - data), field))
            return false;
        if (length == SIZE_MAX && field->name.size == LENGTH_SIZE && !memcmp(field->name.data, LENGTH, LENGTH_SIZE)
            && (length = number(field->value)) == SIZE_MAX)
            return false;
        end = next;
    }
    if (!next)
        return false;
    size_t head_size = (size_t)(end - data);
    record->head_size = head_size;
    record->block = (struct page_span){end + BREAKS, length};
    return length <= size && head_size + BREAKS + length + BREAKS == size;
}
