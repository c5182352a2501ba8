/* SPDX-License-Identifier: Apache-2.0 */
/* A substitute of cuFFT. It transforms only if a test asks for it, and remembers its plans. */
#include "cuda/libs/cufft.h"
#include "fake.h"

#include <math.h>
#include <stdlib.h>

fake_cufft fake_cufft_state;

enum {
    MAX_PLANS = 4096
};
static struct plan { long long n[3], batch; /* leading extents are 1 */ } plans[MAX_PLANS];

/* The transform of one plane, by the definition. */
static void transform(const struct plan *p, const float *in, float *out, bool inverse) {
    const long long rows = p->n[2] / 2 + 1, points = p->n[0] * p->n[1] * p->n[2];
    const double turn = 6.283185307179586476925286766559;
    for (long long to = 0; to < (inverse ? points : p->n[0] * p->n[1] * rows); ++to) {
        const long long width = inverse ? p->n[2] : rows,
                        k[3] = {to / width / p->n[1], to / width % p->n[1], to % width};
        double re = 0, im = 0;
        for (long long i = 0; i < points; ++i) {
            const long long e[3] = {i / p->n[2] / p->n[1], i / p->n[2] % p->n[1], i % p->n[2]};
            double angle = 0;
            for (int a = 0; a < 3; ++a)
                angle += turn * (double)(e[a] * k[a] % p->n[a]) / (double)p->n[a];
            if (!inverse) {
                re += cos(angle) * in[i];
                im -= sin(angle) * in[i];
                continue;
            }
            /* The other half of the bins has the conjugates of the mirrored bins. */
            const bool there = e[2] < rows;
            const long long s[3] = {there ? e[0] : (p->n[0] - e[0]) % p->n[0],
                                    there ? e[1] : (p->n[1] - e[1]) % p->n[1], there ? e[2] : p->n[2] - e[2]};
            const float *bin = in + 2 * ((s[0] * p->n[1] + s[1]) * rows + s[2]);
            re += cos(angle) * bin[0] - sin(angle) * (there ? bin[1] : -bin[1]);
        }
        if (inverse)
            out[to] = (float)re;
        else
            out[2 * to] = (float)re, out[2 * to + 1] = (float)im;
    }
}

static void transform_all(cf_cufft_handle plan, const float *in, float *out, bool inverse) {
    const struct plan *p = &plans[plan % MAX_PLANS];
    const long long points = p->n[0] * p->n[1] * p->n[2], bins = p->n[0] * p->n[1] * (p->n[2] / 2 + 1) * 2;
    for (long long i = 0; i < p->batch && fake_cufft_state.computes; ++i)
        transform(p, in + i * (inverse ? bins : points), out + i * (inverse ? points : bins), inverse);
}

cf_cufft_result cufftGetProperty(cf_cufft_property property, int *value) {
    *value = property == 0 ? 12 : 0;
    return 0;
}
cf_cufft_result cufftCreate(cf_cufft_handle *plan) {
    *plan = ++fake_cufft_state.made;
    ++fake_cufft_state.plans;
    return 0;
}
cf_cufft_result cufftDestroy(cf_cufft_handle plan) {
    (void)plan;
    --fake_cufft_state.plans;
    return 0;
}
cf_cufft_result cufftSetAutoAllocation(cf_cufft_handle plan, int automatic) {
    (void)plan;
    return automatic == 0 ? 0 : 4;
}
cf_cufft_result cufftSetWorkArea(cf_cufft_handle plan, void *area) {
    (void)plan;
    fake_cufft_state.work = area;
    return 0;
}
cf_cufft_result cufftSetStream(cf_cufft_handle plan, cf_cu_stream stream) {
    (void)plan;
    fake_cufft_state.stream = stream;
    return 0;
}
cf_cufft_result cufftMakePlanMany64(cf_cufft_handle plan, int rank, long long *n, long long *in_embed,
                                    long long in_stride, long long in_distance, long long *out_embed,
                                    long long out_stride, long long out_distance, cf_cufft_type type, long long batch,
                                    size_t *bytes) {
    long long in = 1, out = 1;
    for (int a = 0; a < rank; ++a) {
        in *= in_embed[a];
        out *= out_embed[a];
    }
    const bool inverse = type == CF_CUFFT_C2R || type == CF_CUFFT_Z2D;
    if (in != in_distance || out != out_distance || in_stride != 1 || out_stride != 1 || batch < 1 ||
        (inverse ? in_embed : out_embed)[rank - 1] != n[rank - 1] / 2 + 1)
        return 4;
    struct plan *p = &plans[plan % MAX_PLANS];
    *p = (struct plan){{1, 1, 1}, batch};
    for (int a = 0; a < rank; ++a)
        p->n[3 - rank + a] = n[a];
    fake_cufft_state.rank = rank;
    fake_cufft_state.batch = batch;
    *bytes = 4096;
    return batch == FAKE_CUFFT_FAILING_BATCH ? CF_CUFFT_ALLOC_FAILED : 0;
}
cf_cufft_result cufftExecR2C(cf_cufft_handle plan, float *in, struct float2 *out) {
    transform_all(plan, in, (float *)out, false);
    ++fake_cufft_state.runs;
    return 0;
}
cf_cufft_result cufftExecC2R(cf_cufft_handle plan, struct float2 *in, float *out) {
    transform_all(plan, (const float *)in, out, true);
    ++fake_cufft_state.runs;
    return 0;
}
cf_cufft_result cufftExecD2Z(cf_cufft_handle plan, double *in, struct double2 *out) {
    (void)plan, (void)in, (void)out;
    ++fake_cufft_state.runs;
    return 0;
}
cf_cufft_result cufftExecZ2D(cf_cufft_handle plan, struct double2 *in, double *out) {
    (void)plan, (void)in, (void)out;
    ++fake_cufft_state.runs;
    return 0;
}
