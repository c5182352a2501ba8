/* SPDX-License-Identifier: Apache-2.0 */
/* One oneDNN convolution with the reorders around it. */
#ifndef BENCH_ONEDNN_PRIMITIVE_H
#define BENCH_ONEDNN_PRIMITIVE_H

#include "common/impl.h"
#include "conv/baselines/onednn_library.h"

/* An algorithm. any: oneDNN chooses the layouts, else they are the plain ones. */
typedef struct onednn_choice {
    unsigned algorithm;
    bool any;
    const char *text;
} onednn_choice;

typedef struct onednn_device {
    const onednn_functions *call;
    onednn_engine *engine;
    onednn_stream *stream;
} onednn_device;

/* A tensor of the primitive: two inputs and one output. */
typedef struct onednn_operand {
    int argument;
    bool output;
    float *data; /* the plain tensor */
    onednn_layout *plain;
    onednn_memory *user, *own; /* own: in the layout of the primitive; the same as user if that layout is plain */
    onednn_primitive *reorder;
} onednn_operand;

/* Forward, backward data or backward weights. */
typedef struct onednn_unit {
    onednn_primitive *primitive;
    onednn_operand operands[3];
    uint64_t bytes; /* of scratchpad and reordered copies */
    char text[120]; /* implementation and choice */
} onednn_unit;

/* False: oneDNN does not have this convolution. */
bool onednn_unit_open(onednn_unit *u, const onednn_device *o, const bench_job *job, conv_fft_pass pass,
                      const onednn_choice *choice);
void onednn_unit_close(onednn_unit *u, const onednn_device *o);

/* Reorder the inputs, convolve, reorder the output. blocked: without the reorders. */
bool onednn_unit_run(const onednn_device *o, const onednn_unit *u, bool blocked);
/* Reorder one operand. Nothing is done if its layout is plain. */
bool onednn_reorder(const onednn_device *o, const onednn_operand *p);

#endif
