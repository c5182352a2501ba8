/* SPDX-License-Identifier: Apache-2.0 */
/* Which banks of shared memory the threads of tile.cuh meet in: its tasks, counted as the kernels count them. */
#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/tile.h"

#include <string.h>

enum {
    WARPS = 6 /* of a step that are looked at */
};

/* Order and Step of order.cuh. */
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

/* What tasks and places are worked out from. */
typedef struct plane_shape {
    const cf_tile_config *c;
    order o[3];
    int depth, rows, columns, mirror_of_0; /* lines with data; columns; where the mirror image of column 0 stands */
    bool pairs, rides;
} plane_shape;

static int data_of(const cf_tile_config *c, int x) {
    const cf_axis_window *a = &c->problem.fft.transform.window.axis[x];
    return c->problem.sliced[x] ? 1 : (int)cf_max(1, (a->count - 1) * a->spread + 1);
}

static plane_shape shape_of(const cf_tile_config *c) {
    plane_shape s = {.c = c, .pairs = c->kind == CF_TILE_PAIRS};
    for (int x = 0; x < 3; ++x)
        s.o[x] = order_of(c->radix[x], x == 2);
    const int n = s.o[2].n;
    s.rides = s.pairs && c->rides && n % 2 == 0;
    s.depth = data_of(c, 0);
    s.rows = s.pairs ? (data_of(c, 1) + 1) / 2 : data_of(c, 1);
    s.columns = s.pairs ? n / 2 + 1 - s.rides : n;
    return s;
}

static int64_t slab_of(const plane_shape *s) { return (s->pairs ? (s->o[1].n + 1) / 2 : s->o[1].n) * s->c->pitch; }

/* Place of row position s1 of column k. */
static int64_t row_place(const plane_shape *s, int s1, int k) {
    const order *o = &s->o[2];
    const int64_t f = frequency_place(o, k);
    if (!s->pairs)
        return s1 * s->c->pitch + f;
    int64_t m = f;
    if (s1 % 2) {
        const bool own = k == 0 || (!s->rides && 2 * k == o->n);
        m = !own       ? frequency_place(o, k == 0 ? 0 : o->n - k)
            : s->rides ? frequency_place(o, o->n / 2)
                       : o->size + (k > 0);
    }
    return s1 / 2 * s->c->pitch + m;
}

/* Register r of task n of step i along axis x; -1: there is no such task. */
static int64_t place_of(const plane_shape *s, int x, int i, int n, int r) {
    const cf_tile_config *c = s->c;
    const order *o = &s->o[x];
    const step st = step_of(o, i);
    if (x == 2) {
        const int lines = c->planes * s->depth * s->rows;
        const int line = lines >= 16 ? n % lines : n / st.tasks, t = lines >= 16 ? n / lines : n % st.tasks;
        if (n >= lines * st.tasks)
            return -1;
        return line / (s->depth * s->rows) * c->plane + line / s->rows % s->depth * slab_of(s) +
               line % s->rows * c->pitch + start_of(o, i, t) + r * st.stride;
    }
    const bool two = x == 1 && s->pairs && i == 0 && o->steps > 1 && o->m % 2 == 0;
    const int others = x == 1 ? s->depth : s->o[1].n, tasks = st.tasks / (two ? 2 : 1);
    if (n >= c->planes * s->columns * others * tasks)
        return -1;
    const int k = n % s->columns, other = n / s->columns % others, t = n / (s->columns * others) % tasks;
    const int64_t plane = n / (s->columns * others * tasks) * c->plane;
    const int at = two ? 2 * t + r % 2 : start_of(o, i, t) + r * st.stride;
    return plane + (x == 1 ? other * slab_of(s) + row_place(s, at, k)
                           : at * slab_of(s) + row_place(s, frequency_place(&s->o[1], other), k));
}

/* Wavefronts of one access of the lanes from task `first` on. */
static int wavefronts(const plane_shape *s, int x, int i, int first, int r, int together) {
    int total = 0;
    for (int half = 0; half < 32; half += together) {
        int64_t seen[16][16];
        int count[16] = {0}, most = 0;
        for (int lane = half; lane < half + together; ++lane) {
            const int64_t place = place_of(s, x, i, first + lane, r);
            if (place < 0)
                continue;
            const int bank = (int)(place % together);
            bool known = false;
            for (int j = 0; j < count[bank]; ++j)
                known = known || seen[bank][j] == place;
            if (!known)
                seen[bank][count[bank]++] = place;
            most = (int)cf_max(most, count[bank]);
        }
        total += most;
    }
    return total;
}

double cf_tile_wavefronts(const cf_tile_config *c) {
    const plane_shape s = shape_of(c);
    const int together = c->problem.fft.transform.spectrum.dtype == CONV_FFT_FP64 ? 8 : 16;
    double total = 0.0, least = 0.0;
    for (int x = 0; x < 3; ++x)
        for (int i = 0; i < s.o[x].steps && s.o[x].n > 1; ++i) {
            int64_t found = 0, needed = 0;
            int warps = 0;
            if (x == 2 && c->staged) /* quads, which their own rule serves */
                continue;
            for (; warps < WARPS && place_of(&s, x, i, 32 * warps, 0) >= 0; ++warps)
                for (int r = 0; r < 2; ++r) {
                    int lanes = 0;
                    while (lanes < 32 && place_of(&s, x, i, 32 * warps + lanes, 0) >= 0)
                        ++lanes;
                    found += wavefronts(&s, x, i, 32 * warps, r, together);
                    needed += cf_ceil_div(lanes, together);
                }
            const double points =
                (double)(x == 2 ? s.depth * s.rows : s.columns * (x == 1 ? s.depth : s.o[1].n)) * s.o[x].n;
            total += (double)found / (double)needed * points;
            least += points;
        }
    return least > 0.0 ? total / least : 1.0;
}
