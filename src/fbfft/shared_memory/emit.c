/* SPDX-License-Identifier: Apache-2.0 */
/* Print the constants of a kernel of shared_memory/kernel.cuh for the compiler and for people. */
#include "core/arith.h"
#include "core/words.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/shared_memory/config.h"

static const char *word(bool value) { return value ? "true" : "false"; }

static void emit_axis(const cf_axis_window *a, bool sliced, cf_text *t) {
    const int64_t count = sliced && a->count > 0 ? 1 : a->count, slices = sliced ? cf_max(a->count, 1) : 1;
    cf_text_add(t, "    {%lld, %lld, %lld, %lld, %lld, %lld,", (long long)(sliced ? 0 : a->first), (long long)a->spread,
                (long long)count, (long long)a->origin, (long long)a->step, (long long)slices);
    cf_text_add(t, " %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %s, %s},\n", (long long)a->tiles,
                (long long)a->tile_step, (long long)a->shifts, (long long)a->shift_step, (long long)a->phases,
                (long long)a->phase_step, (long long)a->lower, (long long)a->upper, (long long)a->size,
                cf_padding_names[a->mode], word(cf_shared_fft_checked(a)));
}

/* Distance between the first and the last element of a plane. */
static int64_t plane_span(const cf_fft_problem *p) {
    int64_t span = 0;
    for (int x = 0; x < 3; ++x)
        span += (p->transform.window.axis[x].size - 1) * p->transform.tensor.axis_stride[x];
    return span;
}

void cf_shared_fft_emit_config(const cf_shared_fft_config *c, const char *name, cf_text *t) {
    static const char *const kinds[] = {"TWO_ROWS_AS_COMPLEX", "PACKED_REAL", "UNPACKED_REAL", "COMPLEX"};
    static const char *const orders[] = {"BY_PLANE", "BY_COLUMN", "BY_ROW"};
    static const char *const bins[] = {"plain_bins", "fp16_numbers", "bf16_bins", "plain_bins"}, *const scaled[] = {
                                                                                                     "scaled_bins",
                                                                                                     "fp16_bins"};
    const cf_transform_desc *d = &c->problem.fft.transform;
    const int64_t *stride = c->problem.fft.layout.axis_stride;
    cf_text_add(t, "struct %s {\ntypedef %s Storage;\ntypedef %s Bias;\ntypedef %s Bins;\ntypedef %s Offset;\n", name,
                cf_storage_name(d->tensor.dtype),
                cf_storage_name(d->inverse ? cf_tensor_bias_dtype(&d->tensor) : d->tensor.dtype),
                c->problem.scaled ? scaled[d->spectrum.dtype] : bins[d->spectrum.dtype],
                plane_span(&c->problem.fft) < INT32_MAX ? "int" : "long long");
    cf_text_add(t, "static constexpr int KIND = %s, ORDER = %s, P = %d, T = %d, PITCH = %lld, PLANE = %lld;\n",
                kinds[c->kind], orders[c->order], c->planes, c->threads, (long long)c->pitch, (long long)c->plane);
    for (int x = 0; x < 3; ++x)
        cf_text_add(t, "static constexpr int R%d[3] = {%d, %d, %d};\n", x, c->radix[x][0], c->radix[x][1],
                    c->radix[x][2]);
    cf_text_add(t, "static constexpr AxisWindow AXIS[3] = {\n");
    for (int x = 0; x < 3; ++x)
        emit_axis(&d->window.axis[x], c->problem.sliced[x], t);
    cf_text_add(t, "};\nstatic constexpr long long AXIS_STRIDE[3] = {%lld, %lld, %lld}, CHANNEL_STRIDE = %lld;\n",
                (long long)d->tensor.axis_stride[0], (long long)d->tensor.axis_stride[1],
                (long long)d->tensor.axis_stride[2], (long long)d->tensor.channel_stride);
    cf_text_add(t, "static constexpr long long BIN_STRIDE[3] = {%lld, %lld, %lld}, CHANNELS = %lld;\n",
                (long long)stride[0], (long long)stride[1], (long long)stride[2], (long long)d->spectrum.channels);
    cf_text_add(
        t,
        "static constexpr bool DIRECT = %s, IN_REGISTERS = %s, STAGED = %s;\nstatic constexpr int VECTOR = %d, "
        "ALIGNMENT_SHIFT = %d;\n"
        "static constexpr bool UNIT = %s, SCALED = %s, PLANES_INTERLEAVED = %s, PACKS_NYQUIST = %s, FINDS = %s;\n"
        "static constexpr int PREFETCHED = %d;\n};\n",
        word(c->direct), word(c->in_registers), word(c->staged), c->vector_width, c->alignment_shift,
        word(!c->problem.fft.layout.frequency_major), word(!d->inverse && d->scale != 1.0), word(c->planes_interleaved),
        word(c->packs_nyquist), word(c->finds_scales), c->prefetched);
}

void cf_shared_fft_emit(const cf_shared_fft_config *c, cf_text *t) {
    cf_shared_fft_emit_config(c, "Config", t);
    cf_text_add(t, "CF_SHARED_FFT_KERNEL(%s, %d, %d, %s)\n", c->problem.fft.transform.inverse ? "inverse" : "forward",
                c->threads, c->blocks, word(c->problem.fft.pdl_trigger));
}

static void describe_radices(const int r[3], cf_text *t) {
    cf_text_add(t, "%d", r[0]);
    for (int i = 1; i < 3 && r[i] > 1; ++i)
        cf_text_add(t, "*%d", r[i]);
}

void cf_shared_fft_describe(const cf_shared_fft_config *c, cf_text *t) {
    static const char *const kinds[] = {"real, rows in pairs", "real, halved", "real", "complex"};
    cf_text_add(t, "%s transform, %s, radices ", c->problem.fft.transform.inverse ? "inverse" : "forward",
                kinds[c->kind]);
    for (int x = 0; x < 3; ++x) {
        describe_radices(c->radix[x], t);
        cf_text_add(t, x < 2 ? " x " : ", ");
    }
    cf_text_add(t, "planes per block %d, threads %d, shared memory %lld bytes%s", c->planes, c->threads,
                (long long)c->shared, c->direct ? ", spectrum through registers" : "");
    if (c->in_registers)
        cf_text_add(t, ", each thread has a line");
    if (c->prefetched > 0)
        cf_text_add(t, ", %d rows of bins copied ahead", c->prefetched);
    if (c->vector_width > 1)
        cf_text_add(t, ", rows by %d", c->vector_width);
}
