/* SPDX-License-Identifier: Apache-2.0 */
#include "support/case_list.h"

#include "core/clock.h"
#include "support/compare.h"
#include "support/selection.h"
#include "support/tensor.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_THREADS = 64,
    NAME_BYTES = 1024
};

static int taken_so_far;

__attribute__((noreturn)) static void end(const char *what, const char *text) {
    fprintf(stderr, "%s: %s\n", what, text);
    exit(2);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

typedef struct turns {
    void (*check)(int64_t, void *);
    void *argument;
    int64_t count;
    atomic_llong next;
} turns;

static void *take_turns(void *argument) {
    turns *const t = argument;
    for (int64_t i; (i = atomic_fetch_add(&t->next, 1)) < t->count;)
        t->check(i, t->argument);
    return NULL;
}

static int thread_count(void) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t usual = processors < 1 ? 1 : processors > MAX_THREADS ? MAX_THREADS : (uint64_t)processors;
    const uint64_t wanted = environment_number("CONV_FFT_TEST_THREADS", usual);
    if (wanted < 1 || wanted > MAX_THREADS)
        end("CONV_FFT_TEST_THREADS is the number of threads, 1 to 64; it is", getenv("CONV_FFT_TEST_THREADS"));
    return (int)wanted;
}

void side_by_side(int64_t count, void (*check)(int64_t, void *), void *argument) {
    pthread_t threads[MAX_THREADS];
    turns t = {.check = check, .argument = argument, .count = count};
    const int wanted = thread_count(), started = count < wanted ? (int)count : wanted;
    for (int i = 0; i < started; i++)
        if (pthread_create(&threads[i], NULL, take_turns, &t) != 0)
            end("pthread_create", "no thread");
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

void case_list_add(case_list *list, const char *format, ...) {
    char name[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof name)
        end("the name of a case is too long", name);
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 64;
        list->cases = realloc(list->cases, (size_t)list->capacity * sizeof *list->cases);
    }
    char *const copy = strdup(name);
    if (!list->cases || !copy)
        end("no memory for the names of cases", list->name);
    list->cases[list->count++] = copy;
}

void case_list_clear(case_list *list) {
    for (int i = 0; i < list->count; i++)
        free(list->cases[i]);
    free(list->cases);
    *list = (case_list){.name = list->name};
}

/* The selected cases and their check. */
typedef struct chosen {
    const case_list *list;
    int *index;
    void (*check)(int64_t, void *);
    void *argument;
} chosen;

static void check_one(int64_t n, void *argument) {
    const chosen *const c = argument;
    const char *const name = c->list->cases[c->index[n]];
    const double start = cf_clock_seconds();
    case_name(name);
    c->check(c->index[n], c->argument);
    case_name(NULL);
    if (getenv("CONV_FFT_TEST_LOG"))
        fprintf(stderr, "%s: %s: %.3f s\n", c->list->name, name, cf_clock_seconds() - start);
}

/* A program has several lists. CONV_FFT_TEST_CASE may name cases of another list. */
static bool is_left_out(const case_list *list) {
    const char *const only = getenv("CONV_FFT_TEST_CASE");
    bool found = !only || !*only;
    for (int i = 0; i < list->count && !found; i++)
        found = strstr(list->cases[i], only) != NULL;
    return !found;
}

static int choose(const case_list *list, int *index) {
    const size_t bytes = (size_t)list->count * sizeof(bool);
    bool *const taken = test_alloc(bytes);
    int count = 0;
    memset(taken, 0, bytes);
    if (!is_left_out(list))
        test_select(list->name, (const char *const *)list->cases, list->count, taken);
    for (int i = 0; i < list->count; i++)
        if (taken[i])
            index[count++] = i;
    free(taken);
    return count;
}

static int run(case_list *list, void (*check)(int64_t, void *), void *argument, bool threads) {
    int *const index = test_alloc((size_t)list->count * sizeof *index);
    chosen c = {list, index, check, argument};
    const int count = choose(list, index);
    taken_so_far += count;
    if (threads)
        side_by_side(count, check_one, &c);
    for (int i = 0; i < count && !threads; i++)
        check_one(i, &c);
    case_list_clear(list);
    free(index);
    return count;
}

int case_list_each(case_list *list, void (*check)(int64_t, void *), void *argument) {
    return run(list, check, argument, false);
}

int case_list_side_by_side(case_list *list, void (*check)(int64_t, void *), void *argument) {
    return run(list, check, argument, true);
}

int case_list_taken(void) { return taken_so_far; }
