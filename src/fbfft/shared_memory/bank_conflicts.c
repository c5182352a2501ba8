/* SPDX-License-Identifier: Apache-2.0 */
/* Bank conflicts of shared_memory/kernel.cuh. Tasks are counted as the kernel counts them. */
#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/config.h"

#include <string.h>

/* Order and Step of in_place_order.cuh. */
typedef struct order {
    int radix[3], steps, n, m, cp, mp, size;
} order;
typedef struct step {
    int radix, tasks, stride;
} step;

static order order_of(const int r[3], bool pad) {
    order o = {.radix = {r[0], r[1], r[2]}, .steps = 1 + (r[1] * r[2] > 1) + (r[2] > 1), .m = r[1] * r[2]};
    o.n = r[0] * o.m;
    o.cp = pad && r[2] > 1 ? r[2] | 1 : r[2];
    o.mp = pad && o.m > 1 ? (r[1] * o.cp) | 1 : r[1] * o.cp;
    o.size = r[0] * o.mp;
    return o;
}
static int frequency_place(const order *o, int k) {
    return k % o->radix[0] * o->mp + k / o->radix[0] % o->radix[1] * o->cp + k / (o->radix[0] * o->radix[1]);
}
static step step_of(const order *o, int i) {
    return (step){o->radix[i], o->n / o->radix[i], i == 0 ? o->mp : i == 1 ? o->cp : 1};
}
static int start_of(const order *o, int i, int t) {
    const int b = o->radix[1], c = o->radix[2];
    return i == 0 ? t / c * o->cp + t % c : i == 1 ? t / c * o->mp + t % c : t / b * o->mp + t % b * o->cp;
}

/* The inputs of the functions below. */
typedef struct plane_shape {
    const cf_shared_fft_config *c;
    order o[3];
    int depth, rows, columns, mirror_of_0; /* lines with data; columns; the place of column 0's mirror image */
    bool pairs, packs_nyquist;
} plane_shape;

static int data_of(const cf_shared_fft_config *c, int x) {
    const cf_axis_window *a = &c->problem.fft.transform.window.axis[x];
    return c->problem.sliced[x] ? 1 : (int)cf_max(1, (a->count - 1) * a->spread + 1);
}

static plane_shape shape_of(const cf_shared_fft_config *c) {
    plane_shape s = {.c = c, .pairs = c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX};
    for (int x = 0; x < 3; ++x)
        s.o[x] = order_of(c->radix[x], x == 2);
    const int n = s.o[2].n;
    s.packs_nyquist = s.pairs && c->packs_nyquist && n % 2 == 0;
    s.depth = data_of(c, 0);
    s.rows = s.pairs ? (data_of(c, 1) + 1) / 2 : data_of(c, 1);
    s.columns = s.pairs ? n / 2 + 1 - s.packs_nyquist : n;
    return s;
}

/* The place of a lane in the block's memory, as multiples of pitch, plane and number. */
typedef struct lane_place {
    int pitches, planes, numbers;
} lane_place;

/* Lines of axis 2 for each position of axis 0. */
static int rows_of_axis0(const plane_shape *s) { return s->pairs ? (s->o[1].n + 1) / 2 : s->o[1].n; }

/* Row position s1 of column k. */
static lane_place row_place(const plane_shape *s, int s1, int k) {
    const order *o = &s->o[2];
    const int f = frequency_place(o, k);
    if (!s->pairs)
        return (lane_place){.pitches = s1, .numbers = f};
    int m = f;
    if (s1 % 2) {
        const bool own = k == 0 || (!s->packs_nyquist && 2 * k == o->n);
        m = !own               ? frequency_place(o, k == 0 ? 0 : o->n - k)
            : s->packs_nyquist ? frequency_place(o, o->n / 2)
                               : o->size + (k > 0);
    }
    return (lane_place){.pitches = s1 / 2, .numbers = m};
}

/* Whether a thread does two tasks at a time: the first step of columns does, if it also splits pairs of rows. */
static bool two_at_a_time(const plane_shape *s, int x, int i) {
    return x == 1 && s->pairs && i == 0 && s->o[1].steps > 1 && s->o[1].m % 2 == 0;
}

/* Tasks of step i along axis x. */
static int tasks_of(const plane_shape *s, int x, int i) {
    const int planes = s->c->planes, tasks = step_of(&s->o[x], i).tasks;
    if (x == 2)
        return planes * s->depth * s->rows * tasks;
    return planes * s->columns * (x == 1 ? s->depth : s->o[1].n) * (tasks / (two_at_a_time(s, x, i) ? 2 : 1));
}

/* A task of a step: its line, where it begins in its line, and its plane. */
typedef struct task {
    int line, column, start, plane; /* axis 2: the line; other axes: the position on the third axis, and the column */
} task;

/* Task n of step i along axis x. */
static task task_of(const plane_shape *s, int x, int i, int n) {
    const order *o = &s->o[x];
    const int tasks = step_of(o, i).tasks;
    if (x == 2) {
        const int rows = s->depth * s->rows, lines = s->c->planes * rows;
        const int line = lines >= 16 ? n % lines : n / tasks, t = lines >= 16 ? n / lines : n % tasks;
        return (task){line % rows / s->rows * rows_of_axis0(s) + line % s->rows, 0, start_of(o, i, t), line / rows};
    }
    const bool two = two_at_a_time(s, x, i);
    const int others = x == 1 ? s->depth : s->o[1].n, own = tasks / (two ? 2 : 1);
    const int rest = n / s->columns, t = rest / others % own;
    return (task){rest % others, n % s->columns, two ? 2 * t : start_of(o, i, t), rest / others / own};
}

/* Register r of a task of that step. */
static lane_place place_of(const plane_shape *s, int x, int i, const task *t, int r) {
    const int stride = step_of(&s->o[x], i).stride;
    if (x == 2)
        return (lane_place){t->line, t->plane, t->start + r * stride};
    const int at = t->start + (two_at_a_time(s, x, i) ? r % 2 : r * stride);
    lane_place place = row_place(s, x == 1 ? at : frequency_place(&s->o[1], t->line), t->column);
    place.pitches += (x == 1 ? t->line : at) * rows_of_axis0(s);
    place.planes = t->plane;
    return place;
}

/* The wavefront of these lanes. Lanes with one place share an access. A constant that is added to all places changes
 * no conflict. */
static cf_shared_fft_wavefront wavefront_of(const lane_place *place, int lanes) {
    cf_shared_fft_wavefront w = {.times = 1};
    for (int i = 0; i < lanes; ++i) {
        int j = 0;
        while (j < i && memcmp(&place[i], &place[j], sizeof place[i]) != 0)
            ++j;
        if (j < i)
            continue;
        w.pitches[w.places] = (uint8_t)((place[i].pitches - place[0].pitches) % CF_SHARED_FFT_BANKS);
        w.planes[w.places] = (uint8_t)((place[i].planes - place[0].planes) % CF_SHARED_FFT_BANKS);
        w.numbers[w.places++] = (uint8_t)((place[i].numbers - place[0].numbers) % CF_SHARED_FFT_BANKS);
    }
    return w;
}

/* Add a wavefront to a step. Most wavefronts of a step are equal. */
static void add_wavefront(const cf_shared_fft_wavefront *w, int begin, cf_shared_fft_accesses *a) {
    for (int i = begin; i < a->count; ++i) {
        cf_shared_fft_wavefront *const other = &a->wavefronts[i];
        if (other->places == w->places && memcmp(other->pitches, w->pitches, sizeof w->pitches) == 0 &&
            memcmp(other->planes, w->planes, sizeof w->planes) == 0 &&
            memcmp(other->numbers, w->numbers, sizeof w->numbers) == 0) {
            ++other->times;
            return;
        }
    }
    a->wavefronts[a->count++] = *w;
}

/* Add the accesses of the first warps of a step, for two of its registers. */
static void add_accesses(const plane_shape *s, int x, int i, cf_shared_fft_accesses *a) {
    const int begin = a->count, tasks = (int)cf_min(tasks_of(s, x, i), 32 * CF_SHARED_FFT_WARPS);
    for (int first = 0; first < tasks; first += a->together) {
        const int lanes = (int)cf_min(a->together, tasks - first);
        lane_place place[2][CF_SHARED_FFT_BANKS];
        for (int lane = 0; lane < lanes; ++lane) {
            const task t = task_of(s, x, i, first + lane);
            for (int r = 0; r < 2; ++r)
                place[r][lane] = place_of(s, x, i, &t, r);
        }
        for (int r = 0; r < 2; ++r) {
            const cf_shared_fft_wavefront w = wavefront_of(place[r], lanes);
            add_wavefront(&w, begin, a);
        }
    }
}

void cf_shared_fft_find_accesses(const cf_shared_fft_config *c, cf_shared_fft_accesses *a) {
    const plane_shape s = shape_of(c);
    a->together = c->problem.fft.transform.spectrum.dtype == CONV_FFT_FP64 ? 8 : CF_SHARED_FFT_BANKS;
    a->count = a->steps = 0;
    for (int x = 0; x < 3; ++x)
        for (int i = 0; i < s.o[x].steps && s.o[x].n > 1; ++i) {
            if (x == 2 && c->staged) /* staged lines are read as quads: see cf_shared_fft_choose_distances() */
                continue;
            add_accesses(&s, x, i, a);
            a->end[a->steps] = a->count;
            a->points[a->steps++] =
                (double)(x == 2 ? s.depth * s.rows : s.columns * (x == 1 ? s.depth : s.o[1].n)) * s.o[x].n;
        }
}

/* The largest number of different places in one bank. */
static int max_in_a_bank(const cf_shared_fft_wavefront *w, unsigned pitch, unsigned plane, unsigned banks) {
    uint8_t count[CF_SHARED_FFT_BANKS] = {0}, max_count = 0;
    for (int i = 0; i < w->places; ++i) {
        uint8_t *const own = &count[(w->pitches[i] * pitch + w->planes[i] * plane + w->numbers[i]) & (banks - 1)];
        max_count = ++*own > max_count ? *own : max_count;
    }
    return max_count;
}

double cf_shared_fft_wavefronts(const cf_shared_fft_accesses *a, int64_t pitch, int64_t plane) {
    double total = 0.0, ideal = 0.0;
    for (int s = 0, i = 0; s < a->steps; ++s) {
        int found = 0, needed = 0;
        for (; i < a->end[s]; ++i) {
            const cf_shared_fft_wavefront *const w = &a->wavefronts[i];
            needed += w->times;
            found += w->times * max_in_a_bank(w, (unsigned)pitch, (unsigned)plane, (unsigned)a->together);
        }
        total += (double)found / (double)needed * a->points[s];
        ideal += a->points[s];
    }
    return ideal > 0.0 ? total / ideal : 1.0;
}
