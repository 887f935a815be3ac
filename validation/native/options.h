// Options `--name value`, durations (`200us`, `5ms`, `1s`, `30ns`), and random numbers.
#ifndef OPTIONS_H
#define OPTIONS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int option_count;
static char **option_words;

static inline const char *option(const char *name, const char *otherwise) {
    for (int i = 1; i + 1 < option_count; i++)
        if (!strncmp(option_words[i], "--", 2) && !strcmp(option_words[i] + 2, name))
            return option_words[i + 1];
    return otherwise;
}

static inline int number(const char *name, const char *otherwise) {
    return atoi(option(name, otherwise));
}

static inline double duration_ns(const char *name, const char *otherwise) {
    const char *text = option(name, otherwise);
    char *unit;
    double value = strtod(text, &unit);
    if (!strcmp(unit, "ns")) return value;
    if (!strcmp(unit, "us")) return value * 1e3;
    if (!strcmp(unit, "ms")) return value * 1e6;
    if (!strcmp(unit, "s")) return value * 1e9;
    fprintf(stderr, "--%s %s is not a duration\n", name, text);
    exit(2);
}

// splitmix64
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t bits = (*state += 0x9e3779b97f4a7c15u);
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

// In (0, 1].
static inline double random_share(uint64_t *state) {
    return (double)((random_bits(state) >> 11) + 1) * 0x1p-53;
}

static inline double exponential(uint64_t *state, double mean) {
    return -log(random_share(state)) * mean;
}

#endif
