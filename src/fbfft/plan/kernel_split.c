/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If planes are too large for a block, the slowest axis that is left gets a kernel of its own. That kernel transforms
 * complex lines. The other axes are transformed for each element of that axis: each element is a slice. The numbers
 * between the two kernels are stored as
 *
 *     [row][slice][column][bins of the inner axes]
 *     [bins of the inner axes][row][slice][column]       frequency-major
 *
 * Both kernels move whole groups of neighbours. If samples need much memory there, a chunk of them goes through all
 * kernels before the next chunk. Chunks that fit the L2 cache would be too small: on an H200, pairs of 256 x 256
 * kernels took 1.4 times as long with 24 MB at a time as with everything at once, because launches cost more than the
 * cache saves.
 *
 * With 16-bit spectra, the numbers between two kernels have 16 bits as well, and no scales of their own. Forward, the
 * kernel that reads the signal applies the scales of the spectrum. The other kernel divides by a power of two, as large
 * as the sums of its axis may grow; the scales include that power (Factor of shared_memory/addressing.cuh). In the
 * inverse from FP16, results may be much smaller than possible, so nothing can be divided, and the numbers between the
 * kernels stay FP32. A third kernel would round once more, and errors would exceed what layers promise.
 */
#include "fbfft/plan/kernel_split.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/tensor_core/dft_matrix.h"

#include <string.h>

enum {
    CHUNK = 4,          /* numbers between two kernels, in sizes of the L2 cache */
    SHORT_POINTS = 256, /* largest plane for which blocks of different kernels may share a launch */
    MAX_THREADS = 512
};

static int64_t complex_bytes(const cf_shared_fft_problem *p) {
    return 2 * (int64_t)cf_dtype_bytes(p->fft.transform.spectrum.dtype);
}

static int64_t last_bins(const cf_fft_problem *p) {
    const int64_t n = p->transform.spectrum.basis[2];
    return p->complex_signal ? n : n / 2 + 1;
}

/* The transform of one axis of complex numbers. The caller fills in their addresses. */
static void one_axis(cf_shared_fft_problem *p, int x, int64_t points) {
    static const cf_axis_window none = {
        .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
    cf_transform_desc *t = &p->fft.transform;
    const cf_axis_window axis = t->window.axis[x];
    const int64_t basis = t->spectrum.basis[x];
    memset(p->sliced, 0, sizeof p->sliced);
    for (int a = 0; a < 3; ++a) {
        t->window.axis[a] = none;
        t->spectrum.basis[a] = 1;
        t->tensor.axis_stride[a] = 0;
    }
    p->fft.complex_signal = true;
    p->fft.layout.axis_stride[2] = p->fft.layout.axis_stride[x];
    t->scale = 1;
    t->spectrum.basis[2] = basis;
    t->spectrum.rows_per_sample = 1;
    t->spectrum.channels = t->spectrum.columns;
    t->window.axis[2].first = axis.first;
    t->window.axis[2].spread = axis.spread;
    t->window.axis[2].count = t->window.axis[2].size = t->window.axis[2].upper = points;
    t->tensor = (cf_tensor){.dtype = t->spectrum.dtype, .channel_stride = 1};
}

static int64_t power_from(int64_t n) {
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* Divide p into two kernels: `inner`, then `outer`, which transforms axis x. The axes before x have one point. */
static void split(const cf_shared_fft_problem *p, int x, cf_shared_fft_problem *inner, cf_shared_fft_problem *outer) {
    const cf_transform_desc *t = &p->fft.transform;
    const int64_t points = t->window.axis[x].count, basis = t->spectrum.basis[x], columns = t->spectrum.columns;
    const int64_t *stride = p->fft.layout.axis_stride;
    int64_t inside = last_bins(&p->fft);
    for (int a = x + 1; a < 2; ++a)
        inside *= t->spectrum.basis[a];

    *inner = *p;
    inner->sliced[x] = true;
    inner->rows *= points;
    inner->fft.transform.spectrum.basis[x] = 1;
    for (int a = 0; a < 3; ++a)
        if (stride[a] > stride[x])
            inner->fft.layout.axis_stride[a] /= basis;
    *outer = *p;
    one_axis(outer, x, points);
    cf_transform_desc *o = &outer->fft.transform;
    outer->scaled = false;
    if (p->scaled) {
        if (t->inverse)
            o->tensor.dtype = inner->fft.transform.spectrum.dtype = CONV_FFT_FP32;
        else
            o->scale = 1.0 / (double)power_from(points);
    }
    if (p->fft.layout.frequency_major) {
        inner->row_stride = columns;
        inner->unit = inner->rows * columns;
        outer->rows = inside * p->rows;
        outer->split = p->rows;
        o->tensor.axis_stride[2] = columns;
    } else {
        inner->row_stride = columns * inside;
        inner->column_split = columns;
        inner->column_stride = inside;
        o->tensor.axis_stride[2] = o->spectrum.columns = o->spectrum.channels = columns * inside;
        outer->column_split = inside;
        outer->column_split_stride = p->column_stride;
        outer->column_stride = stride[x] == 1 ? basis : 1;
    }
    o->tensor.sample_stride = points * o->tensor.axis_stride[2];
}

/* Whether planes are real, dense and FP32, and spectra too. If so, *desc describes them. */
static bool is_plain(const cf_shared_fft_problem *p, fbfft_desc *desc) {
    const cf_transform_desc *t = &p->fft.transform;
    const int64_t *basis = t->spectrum.basis;
    if (p->fft.complex_signal || p->fft.adds || t->tensor.dtype != CONV_FFT_FP32 || p->fft.layout.frequency_major ||
        t->window.axis[0].phases * t->window.axis[1].phases * t->window.axis[2].phases > 1)
        return false;
    int64_t dense = 1, bins = 1;
    for (int a = 2; a >= 0; --a) {
        const cf_axis_window *w = &t->window.axis[a];
        const bool one = w->size == 1 && w->count == 1;
        if (w->origin != 0 || w->size != w->count || w->first != 0 || w->spread != 1 ||
            w->tiles * w->shifts * w->phases > 1 || (!one && (w->step != 1 || t->tensor.axis_stride[a] != dense)))
            return false;
        if (basis[a] > 1 && p->fft.layout.axis_stride[a] != bins)
            return false;
        dense *= w->size;
        bins *= a == 2 ? basis[a] / 2 + 1 : basis[a];
    }
    /* Channels are more planes. */
    const int64_t columns = t->spectrum.columns;
    const bool planes =
        columns == 1 || (t->tensor.channel_stride == dense && p->column_stride == bins && p->column_split >= columns);
    if (!planes || t->tensor.sample_stride != columns * dense || p->row_stride != columns * bins || basis[0] > 1)
        return false;
    const int rank = basis[1] > 1 ? 2 : 1;
    *desc = (fbfft_desc){.rank = rank, .kind = t->inverse ? FBFFT_C2R : FBFFT_R2C, .scale = t->scale};
    for (int a = 0; a < rank; ++a) {
        desc->basis[a] = basis[3 - rank + a];
        desc->extent[a] = t->window.axis[3 - rank + a].count;
    }
    return rank == 2 || p->sliced[1] || t->window.axis[1].count == 1;
}

static conv_fft_status configure(const cf_shared_fft_problem *p, const cf_gpu_properties *properties,
                                 cf_fft_pass *pass) {
    fbfft_desc desc;
    memset(pass, 0, sizeof *pass);
    if (is_plain(p, &desc) && cf_fft_configure(&desc, properties, &pass->real[0]) == CONV_FFT_SUCCESS) {
        pass->plain = true;
        pass->real[1] = cf_fft_unaligned(&pass->real[0]);
        pass->tile[0].problem = *p;
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_shared_fft_configure(p, properties, &pass->tile[0]));
    pass->tensor_core = cf_tensor_fft_suits(&pass->tile[0], properties);
    if (pass->tensor_core)
        cf_tensor_fft_configure(&pass->tile[0], properties);
    /* A frequency-major spectrum whose accesses are smaller than a sector costs more than a further kernel. */
    const int64_t *basis = p->fft.transform.spectrum.basis;
    if (p->fft.layout.frequency_major && basis[0] * basis[1] > 1 &&
        CF_FFT_SECTOR / complex_bytes(p) > pass->tile[0].planes)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "planes are too large for whole sectors of a frequency-major spectrum");
    pass->tile[1] =
        pass->tensor_core ? cf_tensor_fft_unaligned(&pass->tile[0]) : cf_shared_fft_unaligned(&pass->tile[0]);
    if (!pass->tensor_core)
        cf_shared_fft_choose_prefetch(&pass->tile[0], properties);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_passes_of(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                 cf_fft_passes *passes) {
    cf_fft_passes r = {.count = 0};
    cf_fft_pass found[CF_FFT_MAX_PASSES];
    cf_shared_fft_problem left = cf_shared_fft_problem_of(problem), inner, outer;
    int x = 0, count = 0;
    while (configure(&left, properties, &found[count]) != CONV_FFT_SUCCESS) {
        while (x < 2 && left.fft.transform.spectrum.basis[x] == 1)
            ++x;
        if (x == 2)
            return CONV_FFT_NOT_SUPPORTED; /* cf_shared_fft_configure() has set the message */
        if (count > 0 && cf_dtype_bytes(problem->transform.spectrum.dtype) == 2)
            return cf_fail(CONV_FFT_NOT_SUPPORTED,
                           "planes of this basis need three kernels; transforms with 16-bit spectra have at most two");
        split(&left, x, &inner, &outer);
        CF_FORWARD(configure(&outer, properties, &found[count]));
        ++count;
        left = inner;
    }
    /* The kernels were found from the outermost to the innermost. */
    r.count = count + 1;
    for (int i = 0; i <= count; ++i)
        r.pass[i] = found[count - i];
    int64_t max_bytes = 1;
    for (int i = 0; i < count; ++i) {
        const cf_shared_fft_problem *p = &r.pass[i].tile[0].problem;
        const int64_t *basis = p->fft.transform.spectrum.basis;
        r.between[i] =
            p->rows * p->fft.transform.spectrum.columns * basis[0] * basis[1] * last_bins(&p->fft) * complex_bytes(p);
        max_bytes = cf_max(max_bytes, r.between[i]);
    }
    r.chunk = count > 0 ? cf_max(1, CHUNK * cf_min(properties->l2_bytes, INT32_MAX) / max_bytes) : INT64_MAX;
    *passes = r;
    return CONV_FFT_SUCCESS;
}

/* Small planes need few registers in either kernel, and the launch takes as long as the work. */
static bool is_short(const cf_fft_pass *pass) {
    const int64_t *basis = pass->tile[0].problem.fft.transform.spectrum.basis;
    return basis[1] > 1 && basis[0] * basis[1] * basis[2] <= SHORT_POINTS;
}

/* Threads for blocks of both transforms. Matrix products need a power of two. */
static int threads_of(const cf_fft_pass *const pass[2]) {
    const int max_threads = (int)cf_max(pass[0]->tile[0].threads, pass[1]->tile[0].threads);
    int threads = 32;
    while (threads < max_threads)
        threads *= 2;
    return threads;
}

static bool is_dense(const cf_fft_pass *pass) { return pass->tile[0].bin_tiles > 0; }

bool cf_fft_can_pair(const cf_fft_pass *const pass[2]) {
    if (pass[0]->tensor_core != pass[1]->tensor_core || is_dense(pass[0]) != is_dense(pass[1]))
        return is_short(pass[0]) && is_short(pass[1]) && threads_of(pass) <= MAX_THREADS;
    return !pass[0]->tensor_core || pass[0]->tile[0].threads == pass[1]->tile[0].threads;
}

void cf_fft_pair_tiles(const cf_fft_pass *const pass[2], int variant, const cf_gpu_properties *properties,
                       cf_shared_fft_config pair[2]) {
    for (int i = 0; i < 2; ++i)
        pair[i] = pass[i]->tile[variant];
    if (is_dense(pass[0]) || is_dense(pass[1])) {
        const int dense = is_dense(pass[1]);
        if (!is_dense(pass[1 - dense])) /* any number of warps is possible */
            cf_dense_configure(&pair[dense], pair[1 - dense].threads, properties);
        pair[0].blocks = pair[1].blocks = (int)cf_min(pair[0].blocks, pair[1].blocks);
        return;
    }
    if (pass[0]->tensor_core != pass[1]->tensor_core)
        pair[0].threads = threads_of(pass);
    if (!pass[0]->tensor_core || !pass[1]->tensor_core)
        cf_shared_fft_pair(pair, properties);
}

void cf_fft_emit_pair(const cf_fft_pass *const pass[2], const cf_shared_fft_config pair[2], cf_text *text) {
    static const char *const name[2] = {"First", "Second"};
    const char *kernel[2];
    for (int i = 0; i < 2; ++i) {
        kernel[i] = is_dense(pass[i]) ? "dense" : pass[i]->tensor_core ? "mma" : "shared_fft";
        cf_shared_fft_emit_config(&pair[i], name[i], text);
    }
    cf_text_add(text, "CF_FFT_PAIR_KERNEL(%s, %s, %d, %d)\n", kernel[0], kernel[1], pair[0].threads, pair[0].blocks);
}
