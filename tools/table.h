/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tune and bench: a row for each set of passes of each layer, as text or as JSON. */
#ifndef CONV_FFT_PROGRAM_TABLE_H
#define CONV_FFT_PROGRAM_TABLE_H

#include "network.h"
#include "output.h"

#include <stdbool.h>

typedef enum table_kind {
    TABLE_TUNE,
    TABLE_BENCH /* without the times of the cost model's choice and of the baseline */
} table_kind;

typedef struct table_row {
    const layer_line *layer;
    conv_fft_pass pass;
    bool by_record;                   /* a tuning record has chosen, and not the cost model */
    double ms, model_ms, baseline_ms; /* negative: not known */
    uint64_t workspace_bytes;
    char strategies[STRATEGY_BYTES];
} table_row;

void table_head(const conv_fft_context *context, table_kind kind);

/* Print a row, or add it to the document. verbose: with the strategy lines. */
void table_show(const table_row *row, table_kind kind, bool verbose, json_t *document);

#endif
