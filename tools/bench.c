/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft bench: run every pass of every layer of a network. */
#include "interrupt.h"
#include "main.h"
#include "table.h"

#include <stdio.h>

static int bench_layer(const options *o, conv_fft_context *context, const layer_line *layer, json_t *document) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS,
                                           CONV_FFT_BACKWARD};
    conv_fft_plan *plan = NULL;
    conv_fft_status status = conv_fft_plan_create(context, &layer->problem, NULL, &plan);
    for (int i = 0; i < 4 && status == CONV_FFT_SUCCESS && !interrupted; ++i) {
        table_row row = {.layer = layer, .pass = passes[i], .ms = -1, .model_ms = -1, .baseline_ms = -1};
        conv_fft_description d;
        /* The gradients are tuned together, so the set of both has the time of a record. */
        status = conv_fft_plan_describe(plan, i == 0 ? CONV_FFT_FORWARD : CONV_FFT_BACKWARD, &d);
        row.by_record = status == CONV_FFT_SUCCESS && d.measured_ms >= 0;
        if (status == CONV_FFT_SUCCESS)
            status = conv_fft_profile(plan, passes[i], o->measure ? (int)o->measure : 10, &d);
        if (status == CONV_FFT_SUCCESS)
            status = read_strategies(plan, passes[i], row.strategies);
        row.ms = d.measured_ms;
        row.workspace_bytes = d.workspace_bytes;
        if (status == CONV_FFT_SUCCESS)
            table_show(&row, TABLE_BENCH, o->verbose, document);
    }
    if (status != CONV_FFT_SUCCESS)
        layer_error(layer);
    conv_fft_plan_destroy(plan);
    fflush(stdout);
    return status != CONV_FFT_SUCCESS;
}

static int bench_network(const options *o, conv_fft_context *context, const network *n) {
    json_t *document = o->json ? json_begin_layers("bench", context) : NULL;
    int failed = 0;
    interrupt_begin();
    if (!document)
        table_head(context, TABLE_BENCH);
    for (int64_t i = 0; i < n->count && !interrupted; ++i)
        failed |= bench_layer(o, context, &n->layers[i], document);
    return document ? failed | json_end(document) : failed;
}

int bench_command(const options *o, char **words, int count) {
    if (count == 0)
        return usage_error("bench needs a file of problem lines", NULL);
    return with_network(o, words, count, bench_network);
}
