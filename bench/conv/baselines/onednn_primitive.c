/* SPDX-License-Identifier: Apache-2.0 */
/* One oneDNN convolution primitive, its tensors and their reorders. */
#include "conv/baselines/onednn_primitive.h"

#include <stdio.h>

/* ---- descriptions */

static const unsigned plain_tag[] = {0, 0, 0, ONEDNN_ABC, ONEDNN_ABCD, ONEDNN_ABCDE, ONEDNN_ABCDEF};

/* The last `rank` of three extents. */
static int axes(int64_t *extents, int count, int rank, const int64_t extent[3]) {
    for (int a = 3 - rank; a < 3; a++)
        extents[count++] = extent[a];
    return count;
}

/* The layouts of x, w and y, and of their gradients. */
typedef struct layouts {
    onednn_layout *x, *w, *y;
} layouts;

static void destroy_layouts(const onednn_functions *call, layouts *l) {
    call->memory_desc_destroy(l->x);
    call->memory_desc_destroy(l->w);
    call->memory_desc_destroy(l->y);
}

static bool create_layout(const onednn_functions *call, onednn_layout **layout, int count, const int64_t *extents,
                          bool any) {
    return call->memory_desc_create_with_tag(layout, count, extents, ONEDNN_F32,
                                             any ? (unsigned)ONEDNN_ANY : plain_tag[count]) == 0;
}

static bool create_layouts(const onednn_functions *call, const bench_job *job, bool any, layouts *l) {
    const bench_shape *s = &job->layer->shape;
    int rank = job->layer->problem.rank, first = s->groups > 1 ? 0 : 1;
    int64_t x[ONEDNN_MAX_AXES] = {s->batch, s->groups * s->in}, y[ONEDNN_MAX_AXES] = {s->batch, s->groups * s->out},
            w[ONEDNN_MAX_AXES] = {s->groups, s->out, s->in};
    int x_axes = axes(x, 2, rank, s->d), y_axes = axes(y, 2, rank, s->m), w_axes = axes(w, 3, rank, s->k) - first;
    *l = (layouts){0};
    if (create_layout(call, &l->x, x_axes, x, any) && create_layout(call, &l->w, w_axes, w + first, any) &&
        create_layout(call, &l->y, y_axes, y, any))
        return true;
    destroy_layouts(call, l);
    return false;
}

/* Backward passes get the description of the forward pass as a hint. */
static onednn_status describe_pass(const onednn_device *o, const bench_job *job, conv_fft_pass pass, unsigned algorithm,
                                   const layouts *l, onednn_description **result) {
    const conv_fft_problem *p = &job->layer->problem;
    int64_t stride[ONEDNN_MAX_AXES], dilation[ONEDNN_MAX_AXES], before[ONEDNN_MAX_AXES], after[ONEDNN_MAX_AXES];
    for (int a = 0; a < p->rank; a++) {
        stride[a] = p->stride[a];
        dilation[a] = p->dilation[a] - 1; /* oneDNN counts the elements between two taps */
        before[a] = p->pad_before[a];
        after[a] = p->pad_after[a];
    }

    onednn_description *forward;
    onednn_status status = o->call->convolution_forward_primitive_desc_create(
        &forward, o->engine, ONEDNN_TRAINING, algorithm, l->x, l->w, NULL, l->y, stride, dilation, before, after, NULL);
    if (status != 0)
        return status;
    if (pass == CONV_FFT_FORWARD) {
        *result = forward;
        return status;
    }
    status =
        pass == CONV_FFT_BACKWARD_DATA
            ? o->call->convolution_backward_data_primitive_desc_create(result, o->engine, algorithm, l->x, l->w, l->y,
                                                                       stride, dilation, before, after, forward, NULL)
            : o->call->convolution_backward_weights_primitive_desc_create(
                  result, o->engine, algorithm, l->x, l->w, NULL, l->y, stride, dilation, before, after, forward, NULL);
    o->call->primitive_desc_destroy(forward);
    return status;
}

static onednn_description *describe(const onednn_device *o, const bench_job *job, conv_fft_pass pass,
                                    const onednn_choice *choice) {
    layouts l;
    onednn_description *result = NULL;
    if (!create_layouts(o->call, job, choice->any, &l))
        return NULL;
    const bool good = describe_pass(o, job, pass, choice->algorithm, &l, &result) == 0;
    destroy_layouts(o->call, &l);
    return good ? result : NULL;
}

/* ---- one unit */

/* The operands own the plain layouts. */
static bool name_operands(onednn_unit *u, const onednn_device *o, const bench_job *job, conv_fft_pass pass) {
    const bench_data *t = job->data;
    layouts l;
    if (!create_layouts(o->call, job, false, &l))
        return false;
    onednn_operand x = {.argument = ONEDNN_X, .data = t->x, .plain = l.x},
                   w = {.argument = ONEDNN_W, .data = t->w, .plain = l.w};
    onednn_operand gy = {.argument = ONEDNN_GY, .data = t->gy, .plain = l.y};
    onednn_operand y = {.argument = ONEDNN_Y, .output = true, .data = t->y, .plain = l.y};
    onednn_operand gx = {.argument = ONEDNN_GX, .output = true, .data = t->gx, .plain = l.x};
    onednn_operand gw = {.argument = ONEDNN_GW, .output = true, .data = t->gw, .plain = l.w};
    u->operands[0] = pass == CONV_FFT_BACKWARD_DATA ? w : x;
    u->operands[1] = pass == CONV_FFT_FORWARD ? w : gy;
    u->operands[2] = pass == CONV_FFT_FORWARD ? y : pass == CONV_FFT_BACKWARD_DATA ? gx : gw;
    return true;
}

/* Allocate the memory of an operand, and make a reorder if the primitive uses another layout. */
static bool bind(onednn_operand *p, const onednn_device *o, const onednn_layout *wanted, uint64_t *bytes) {
    if (!wanted || o->call->memory_create(&p->user, p->plain, o->engine, p->data) != 0)
        return false;
    p->own = p->user;
    if (o->call->memory_desc_equal(p->plain, wanted))
        return true;
    if (o->call->memory_create(&p->own, wanted, o->engine, ONEDNN_ALLOCATE) != 0) {
        p->own = p->user;
        return false;
    }
    *bytes += o->call->memory_desc_get_size(wanted);
    const onednn_layout *from = p->output ? wanted : p->plain, *to = p->output ? p->plain : wanted;
    onednn_description *description;
    if (o->call->reorder_primitive_desc_create(&description, from, o->engine, to, o->engine, NULL) != 0)
        return false;
    bool good = o->call->primitive_create(&p->reorder, description) == 0;
    o->call->primitive_desc_destroy(description);
    return good;
}

void onednn_unit_close(onednn_unit *u, const onednn_device *o) {
    for (int i = 0; i < 3; i++) {
        onednn_operand *p = &u->operands[i];
        o->call->primitive_destroy(p->reorder);
        if (p->own != p->user)
            o->call->memory_destroy(p->own);
        o->call->memory_destroy(p->user);
        o->call->memory_desc_destroy(p->plain);
    }
    o->call->primitive_destroy(u->primitive);
    *u = (onednn_unit){0};
}

bool onednn_unit_open(onednn_unit *u, const onednn_device *o, const bench_job *job, conv_fft_pass pass,
                      const onednn_choice *choice) {
    *u = (onednn_unit){0};
    onednn_description *description = describe(o, job, pass, choice);
    if (!description)
        return false;
    const char *implementation = "?";
    int64_t scratchpad = 0;
    o->call->primitive_desc_query(description, ONEDNN_QUERY_IMPLEMENTATION, 0, &implementation);
    o->call->primitive_desc_query(description, ONEDNN_QUERY_SCRATCHPAD, 0, &scratchpad);
    u->bytes = (uint64_t)scratchpad;
    snprintf(u->text, sizeof u->text, "%s %s", implementation, choice->text);
    bool good = name_operands(u, o, job, pass) && o->call->primitive_create(&u->primitive, description) == 0;
    for (int i = 0; i < 3 && good; i++)
        good = bind(&u->operands[i], o,
                    o->call->primitive_desc_query_md(description, ONEDNN_QUERY_ARGUMENT, u->operands[i].argument),
                    &u->bytes);
    o->call->primitive_desc_destroy(description);
    if (!good)
        onednn_unit_close(u, o);
    return good;
}

bool onednn_reorder(const onednn_device *o, const onednn_operand *p) {
    if (!p->reorder)
        return true;
    onednn_argument arguments[] = {{ONEDNN_FROM, p->output ? p->own : p->user},
                                   {ONEDNN_TO, p->output ? p->user : p->own}};
    return o->call->primitive_execute(p->reorder, o->stream, 2, arguments) == 0;
}

static bool convolve(const onednn_device *o, const onednn_unit *u) {
    onednn_argument arguments[3];
    for (int i = 0; i < 3; i++)
        arguments[i] = (onednn_argument){u->operands[i].argument, u->operands[i].own};
    return o->call->primitive_execute(u->primitive, o->stream, 3, arguments) == 0;
}

bool onednn_unit_run(const onednn_device *o, const onednn_unit *u, bool blocked) {
    bool good = blocked || (onednn_reorder(o, &u->operands[0]) && onednn_reorder(o, &u->operands[1]));
    good = good && convolve(o, u) && (blocked || onednn_reorder(o, &u->operands[2]));
    return o->call->stream_wait(o->stream) == 0 && good;
}
