/*
 * Which features of a language model a text has: a walk through the model's automaton, a byte a step. The model is
 * py3langid's, whose own walk (langid.py, visit_counts) is the specification. Numbers of a model that lead out of its
 * tables end the walk.
 */
#include "page.h"

bool automaton_walk(const struct automaton *model, const unsigned char *text, size_t size, uint32_t *places,
                    struct automaton_feature *found, size_t *count)
{
    size_t state = 0, met = 0;
    bool right = true;
    for (size_t at = 0; at < size && right; at++) {
        size_t next = state < model->state_count ? (size_t)model->states[state].row * 256 + text[at] : SIZE_MAX;
        right = next < model->step_count && model->steps[next] < model->state_count;
        if (!right)
            break;
        state = model->steps[next];
        int64_t feature = model->states[state].feature;
        if (feature < 0)
            continue;
        if ((right = (uint64_t)feature < model->feature_count)) {
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
