/*
 * Memory for lexbor, which is written as if there were always some: where an allocation fails, several of its functions
 * go on with a null pointer. So none fails for it. The walk is left instead, from wherever in lexbor it was, and all
 * that lexbor holds is freed here; nothing of lexbor is called again before that.
 */
#include "page.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "lexbor/core/base.h"

/* Before each piece that lexbor holds. */
struct block {
    alignas(max_align_t) struct block *before;
    struct block *behind;
};

static struct block held = {&held, &held};
static jmp_buf *way_out;

static void *piece(struct block *block)
{
    if (!block) {
        if (way_out)
            longjmp(*way_out, 1);
        return NULL;
    }
    block->before = &held;
    block->behind = held.behind;
    held.behind->before = block;
    held.behind = block;
    return block + 1;
}

static void unlink_block(struct block *block)
{
    block->before->behind = block->behind;
    block->behind->before = block->before;
}

static void *take(size_t size)
{
    return piece(size > SIZE_MAX / 2 ? NULL : malloc(sizeof(struct block) + size));
}

static void *take_zeros(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        return piece(NULL);
    return piece(calloc(1, sizeof(struct block) + count * size));
}

static void give_back(void *memory)
{
    if (!memory)
        return;
    struct block *block = (struct block *)memory - 1;
    unlink_block(block);
    free(block);
}

static void *resize(void *memory, size_t size)
{
    if (!memory)
        return take(size);
    struct block *block = (struct block *)memory - 1;
    unlink_block(block);
    struct block *moved = size > SIZE_MAX / 2 ? NULL : realloc(block, sizeof(struct block) + size);
    if (!moved)
        piece(block); /* it is still there, and freed with the rest */
    return piece(moved);
}

void memory_lend(jmp_buf *out)
{
    static bool lent;
    if (!lent)
        lexbor_memory_setup(take, resize, take_zeros, give_back);
    lent = true;
    way_out = out;
}

void memory_free_all(void)
{
    while (held.behind != &held)
        give_back(held.behind + 1);
}
