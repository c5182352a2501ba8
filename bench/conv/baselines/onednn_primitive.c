/* SPDX-License-Identifier: Apache-2.0 */
/* One oneDNN convolution primitive, its tensors and their reorders. */
#ifdef CONV_FFT_BENCH_DNNL

#include "conv/baselines/onednn_primitive.h"

#include <stdio.h>

/* ---- descriptors */

static const dnnl_format_tag_t plain_tag[] = {0, 0, 0, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};

/* The last `rank` of three extents. */
static int axes(dnnl_dims_t dims, int count, int rank, const int64_t extent[3]) {
    for (int a = 3 - rank; a < 3; a++)
        dims[count++] = extent[a];
    return count;
}

typedef struct descriptors {
    dnnl_memory_desc_t x, w, y;
} descriptors;

static bool describe(const bench_job *job, bool any, descriptors *d) {
    const bench_shape *s = &job->layer->shape;
    int rank = job->layer->problem.rank, first = s->groups > 1 ? 0 : 1;
    dnnl_dims_t x = {s->batch, s->groups * s->in}, y = {s->batch, s->groups * s->out}, w = {s->groups, s->out, s->in};
    int x_axes = axes(x, 2, rank, s->d), y_axes = axes(y, 2, rank, s->m), w_axes = axes(w, 3, rank, s->k) - first;
    return dnnl_memory_desc_init_by_tag(&d->x, x_axes, x, dnnl_f32, any ? dnnl_format_tag_any : plain_tag[x_axes]) ==
               dnnl_success &&
           dnnl_memory_desc_init_by_tag(&d->y, y_axes, y, dnnl_f32, any ? dnnl_format_tag_any : plain_tag[y_axes]) ==
               dnnl_success &&
           dnnl_memory_desc_init_by_tag(&d->w, w_axes, w + first, dnnl_f32,
                                        any ? dnnl_format_tag_any : plain_tag[w_axes]) == dnnl_success;
}

/* The primitive descriptor of one pass. Backward passes get the forward one as a hint. */
static dnnl_primitive_desc_t primitive_desc(const onednn_device *o, const bench_job *job, conv_fft_pass pass,
                                            const onednn_choice *choice) {
    const conv_fft_problem *p = &job->layer->problem;
    descriptors d;
    dnnl_dims_t stride, dilation, before, after;
    for (int a = 0; a < p->rank; a++) {
        stride[a] = p->stride[a];
        dilation[a] = p->dilation[a] - 1; /* oneDNN counts the elements between two taps */
        before[a] = p->pad_before[a];
        after[a] = p->pad_after[a];
    }

    dnnl_convolution_desc_t forward, backward;
    dnnl_primitive_desc_t hint = NULL, result = NULL;
    if (!describe(job, choice->any, &d) ||
        dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training, choice->algorithm, &d.x, &d.w, NULL,
                                                   &d.y, stride, dilation, before, after) != dnnl_success ||
        dnnl_primitive_desc_create(&hint, &forward, NULL, o->engine, NULL) != dnnl_success)
        return NULL;
    if (pass == CONV_FFT_FORWARD)
        return hint;
    dnnl_status_t status =
        pass == CONV_FFT_BACKWARD_DATA
            ? dnnl_dilated_convolution_backward_data_desc_init(&backward, choice->algorithm, &d.x, &d.w, &d.y, stride,
                                                               dilation, before, after)
            : dnnl_dilated_convolution_backward_weights_desc_init(&backward, choice->algorithm, &d.x, &d.w, NULL, &d.y,
                                                                  stride, dilation, before, after);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&result, &backward, NULL, o->engine, hint);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success ? result : NULL;
}

/* ---- one unit */

static void name_operands(onednn_unit *u, const bench_job *job, conv_fft_pass pass) {
    const bench_data *t = job->data;
    descriptors d;
    describe(job, false, &d);
    onednn_operand x = {.argument = DNNL_ARG_SRC, .data = t->x, .plain = d.x},
                   w = {.argument = DNNL_ARG_WEIGHTS, .data = t->w, .plain = d.w};
    onednn_operand gy = {.argument = DNNL_ARG_DIFF_DST, .data = t->gy, .plain = d.y};
    onednn_operand y = {.argument = DNNL_ARG_DST, .output = true, .data = t->y, .plain = d.y};
    onednn_operand gx = {.argument = DNNL_ARG_DIFF_SRC, .output = true, .data = t->gx, .plain = d.x};
    onednn_operand gw = {.argument = DNNL_ARG_DIFF_WEIGHTS, .output = true, .data = t->gw, .plain = d.w};
    u->operands[0] = pass == CONV_FFT_BACKWARD_DATA ? w : x;
    u->operands[1] = pass == CONV_FFT_FORWARD ? w : gy;
    u->operands[2] = pass == CONV_FFT_FORWARD ? y : pass == CONV_FFT_BACKWARD_DATA ? gx : gw;
}

/* Allocate the memory of an operand, and make a reorder if the primitive uses another layout. */
static bool bind(onednn_operand *p, const onednn_device *o, const dnnl_memory_desc_t *wanted, uint64_t *bytes) {
    if (dnnl_memory_create(&p->user, &p->plain, o->engine, p->data) != dnnl_success)
        return false;
    p->own = p->user;
    if (dnnl_memory_desc_equal(&p->plain, wanted))
        return true;
    if (dnnl_memory_create(&p->own, wanted, o->engine, DNNL_MEMORY_ALLOCATE) != dnnl_success) {
        p->own = p->user;
        return false;
    }
    *bytes += dnnl_memory_desc_get_size(wanted);
    const dnnl_memory_desc_t *from = p->output ? wanted : &p->plain, *to = p->output ? &p->plain : wanted;
    dnnl_primitive_desc_t desc;
    if (dnnl_reorder_primitive_desc_create(&desc, from, o->engine, to, o->engine, NULL) != dnnl_success)
        return false;
    bool good = dnnl_primitive_create(&p->reorder, desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    return good;
}

void onednn_unit_close(onednn_unit *u) {
    for (int i = 0; i < 3; i++) {
        onednn_operand *p = &u->operands[i];
        dnnl_primitive_destroy(p->reorder);
        if (p->own != p->user)
            dnnl_memory_destroy(p->own);
        dnnl_memory_destroy(p->user);
    }
    dnnl_primitive_destroy(u->primitive);
    *u = (onednn_unit){0};
}

bool onednn_unit_open(onednn_unit *u, const onednn_device *o, const bench_job *job, conv_fft_pass pass,
                      const onednn_choice *choice) {
    *u = (onednn_unit){0};
    dnnl_primitive_desc_t desc = primitive_desc(o, job, pass, choice);
    if (!desc)
        return false;
    const char *implementation = "?";
    int64_t scratchpad = 0;
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &implementation);
    dnnl_primitive_desc_query(desc, dnnl_query_memory_consumption_s64, 0, &scratchpad);
    u->bytes = (uint64_t)scratchpad;
    snprintf(u->text, sizeof u->text, "%s %s", implementation, choice->text);
    name_operands(u, job, pass);
    bool good = dnnl_primitive_create(&u->primitive, desc) == dnnl_success;
    for (int i = 0; i < 3 && good; i++)
        good = bind(&u->operands[i], o,
                    dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, u->operands[i].argument), &u->bytes);
    dnnl_primitive_desc_destroy(desc);
    if (!good)
        onednn_unit_close(u);
    return good;
}

bool onednn_reorder(const onednn_device *o, const onednn_operand *p) {
    if (!p->reorder)
        return true;
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, p->output ? p->own : p->user},
                                   {DNNL_ARG_TO, p->output ? p->user : p->own}};
    return dnnl_primitive_execute(p->reorder, o->stream, 2, arguments) == dnnl_success;
}

static bool convolve(const onednn_device *o, const onednn_unit *u) {
    dnnl_exec_arg_t arguments[3];
    for (int i = 0; i < 3; i++)
        arguments[i] = (dnnl_exec_arg_t){u->operands[i].argument, u->operands[i].own};
    return dnnl_primitive_execute(u->primitive, o->stream, 3, arguments) == dnnl_success;
}

bool onednn_unit_run(const onednn_device *o, const onednn_unit *u, bool blocked) {
    bool good = blocked || (onednn_reorder(o, &u->operands[0]) && onednn_reorder(o, &u->operands[1]));
    good = good && convolve(o, u) && (blocked || onednn_reorder(o, &u->operands[2]));
    return dnnl_stream_wait(o->stream) == dnnl_success && good;
}

#else

/* A source file must not be empty. */
typedef int onednn_is_not_used;

#endif
