/*
 * Which features of a language model a text has: a walk through the model's automaton, a byte a step. The model is
 * py3langid's, whose own walk (langid.py, visit_counts) is the specification. Numbers of a model that lead out of its
 * tables end the walk.
 *
 * A step waits for memory: the tables have 39 MB. So several parts of a text are walked at once. In what state a part
 * begins the bytes before it say, as the automaton forgets what is further back than its longest feature; a part that
 * has been begun in another state than the part before it ends in is walked again.
 */
#include <math.h>

#include "page.h"

enum { LANES = 8, LANE_BYTES = 256, BEFORE = 8, AHEAD = 8 };

struct lane {
    size_t first, state; /* the state that it has been begun in, and that it is in */
    bool right;
};

static bool step(const struct automaton *model, unsigned char byte, size_t *state)
{
    size_t next = *state < model->state_count ? (size_t)model->states[*state].row * 256 + byte : SIZE_MAX;
    if (next >= model->step_count || model->steps[next] >= model->state_count)
        return false;
    *state = model->steps[next];
    return true;
}

static struct lane walked(const struct automaton *model, const unsigned char *text, size_t size, size_t state,
                          int32_t *features)
{
    struct lane lane = {.first = state, .state = state, .right = true};
    for (size_t at = 0; at < size && (lane.right = step(model, text[at], &lane.state)); at++)
        if (features)
            features[at] = model->states[lane.state].feature;
    return lane;
}

/* The features of LANES parts of so many bytes, and the state behind them. */
static bool walked_at_once(const struct automaton *model, const unsigned char *text, size_t each, size_t *state,
                           int32_t *features)
{
    struct lane lanes[LANES];
    lanes[0] = (struct lane){.first = *state, .state = *state, .right = true};
    for (size_t place = 1; place < LANES; place++) {
        lanes[place] = walked(model, text + place * each - BEFORE, BEFORE, 0, NULL);
        lanes[place].first = lanes[place].state;
    }
    for (size_t at = 0; at < each; at++)
        for (size_t place = 0; place < LANES; place++) {
            struct lane *lane = lanes + place;
            lane->right = lane->right && step(model, text[place * each + at], &lane->state);
            features[place * each + at] = lane->right ? model->states[lane->state].feature : 0;
        }
    for (size_t place = 0; place < LANES; place++) {
        size_t from = place * each;
        if (lanes[place].first != *state)
            lanes[place] = walked(model, text + from, each, *state, features + from);
        if (!lanes[place].right)
            return false;
        *state = lanes[place].state;
    }
    return true;
}

bool automaton_walk(const struct automaton *model, const unsigned char *text, size_t size, uint32_t *places,
                    struct automaton_feature *found, size_t *count)
{
    int32_t features[LANES * LANE_BYTES];
    size_t state = 0, met = 0, some;
    bool right = true;
    for (size_t start = 0; start < size && right; start += some) {
        size_t each = (size - start) / LANES < LANE_BYTES ? (size - start) / LANES : LANE_BYTES;
        some = each > BEFORE ? LANES * each : size - start;
        if (each > BEFORE)
            right = walked_at_once(model, text + start, each, &state, features);
        else {
            struct lane rest = walked(model, text + start, some, state, features);
            state = rest.state;
            right = rest.right;
        }
        for (size_t at = 0; at < some && right; at++) {
            int32_t feature = features[at];
            if (feature < 0)
                continue;
            if (!(right = (size_t)feature < model->feature_count))
                break;
            if (!places[feature]) {
                found[met].feature = feature;
                found[met++].times = 0;
                places[feature] = (uint32_t)met;
            }
            found[places[feature] - 1].times++;
        }
    }
    for (size_t place = 0; place < met; place++)
        places[found[place].feature] = 0;
    *count = met;
    return right;
}

void automaton_sum(const float *table, size_t classes, const struct automaton_feature *found, size_t count,
                   float *sums)
{
    for (size_t at = 0; at < count; at++) {
        if (at + AHEAD < count) {
            const char *ahead = (const char *)(table + (size_t)found[at + AHEAD].feature * classes);
            for (size_t line = 0; line < classes * sizeof *table; line += 64)
                __builtin_prefetch(ahead + line);
        }
        const float weight = log1pf((float)found[at].times), *row = table + (size_t)found[at].feature * classes;
        for (size_t place = 0; place < classes; place++)
            sums[place] += weight * row[place];
    }
}
