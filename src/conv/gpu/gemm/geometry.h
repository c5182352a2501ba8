/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory of a block of products on tensor cores, for the host, the kernels and the emulator. A block has
 * `slices` groups of warps that share a sum; each group has memory of its own. The operands a and b are those of
 * cgemm_split_fp16.cuh. An operand's chunk is stored in lines: rows with k running if the operand is dense, otherwise
 * one line for each k.
 */
#ifndef CF_CONV_GPU_GEMM_GEOMETRY_H
#define CF_CONV_GPU_GEMM_GEOMETRY_H

#include "core/host_device.h"

enum {
    CF_CGEMM_CHUNK = 16, /* FP32: values of k in a chunk */
    CF_CGEMM_FOUND = 16  /* 16-bit spectra: groups of eight columns for whose maxima a warp has places */
};

/* Rows and columns of the result, and threads, of a group of warps. A warp has m_tiles x n_tiles tiles of 16 x 8. */
CF_CONSTEXPR int cf_cgemm_tile_rows(int m_tiles, int warps_m) { return 16 * m_tiles * warps_m; }
CF_CONSTEXPR int cf_cgemm_tile_columns(int n_tiles, int warps_n) { return 8 * n_tiles * warps_n; }
CF_CONSTEXPR int cf_cgemm_tile_threads(int warps_m, int warps_n) { return 32 * warps_m * warps_n; }

/* FP32 spectra. All sizes are in bytes. */
typedef struct cf_cgemm_layout {
    int raw;    /* a chunk of both operands, as in memory */
    int term;   /* one FP16 term of a chunk of b */
    int split;  /* all terms of a chunk of b */
    int slice;  /* a group of warps: raw chunks of all stages, terms of b, a scale for each column */
    int shared; /* a block */
} cf_cgemm_layout;

CF_CONSTEXPR cf_cgemm_layout cf_cgemm_layout_of(int m, int n, int stages, int terms, int slices) {
    cf_cgemm_layout l = {0, 0, 0, 0, 0};
    l.raw = CF_CGEMM_CHUNK * (m + n) * 8;
    l.term = CF_CGEMM_CHUNK * n * 4;
    l.split = terms * l.term;
    l.slice = stages * l.raw + l.split + n * 4;
    l.shared = slices * l.slice;
    return l;
}

/* 16-bit spectra: words from one line to the next. In lines of one k, four lines are read at a time and must lie in
 * different banks. fp16_swizzle() permutes their units. If that would leave the line, lines are padded instead. */
CF_CONSTEXPR int cf_fp16_cgemm_pitch(bool dense, int chunk, int rows) {
    return dense ? chunk : rows % 32 == 0 ? rows : rows + 8;
}

/* Bytes, in whole lines of 128 bytes. */
CF_CONSTEXPR int cf_fp16_cgemm_lines(int bytes) { return (bytes + 127) / 128 * 128; }

typedef struct cf_fp16_cgemm_layout {
    int a_pitch, b_pitch; /* words from one line to the next */
    int a_bytes, b_bytes; /* of a chunk */
    int raw;              /* bytes of a chunk of both operands */
    /* Scale tables, for spectra with scales. */
    int a_tops,
        b_tops; /* numbers: 1 / the largest scale of each line, or of each eight columns; all slices share them */
    int found;  /* numbers: what each warp finds for eight columns */
    int part;   /* values of k whose scales are in the tables at a time */
    int a_lows, b_lows; /* bytes: how many powers of two each scale of a part is below the largest */
    int factors;        /* numbers: what sums are multiplied by */
    int tables;         /* bytes of the tables that all slices share */
    int slice;          /* bytes of a group of warps: raw chunks of all stages, lows */
    int shared;         /* bytes of a block */
} cf_fp16_cgemm_layout;

/* kind: cf_cgemm_kind. m, n: rows and columns of a group of warps. warps: of a block. a_row: numbers of a row of a. */
CF_CONSTEXPR cf_fp16_cgemm_layout cf_fp16_cgemm_layout_of(int kind, int m, int n, int warps, int chunk, int stages,
                                                          int slices, long long a_row, bool scaled) {
    const bool a_dense = kind != 2, b_dense = kind == 0;
    cf_fp16_cgemm_layout l = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    l.a_pitch = cf_fp16_cgemm_pitch(a_dense, chunk, m);
    l.b_pitch = cf_fp16_cgemm_pitch(b_dense, chunk, n);
    l.a_bytes = 4 * l.a_pitch * (a_dense ? m : chunk);
    l.b_bytes = 4 * l.b_pitch * (b_dense ? n : chunk);
    l.raw = l.a_bytes + l.b_bytes;
    l.a_tops = a_dense ? m : m / 8;
    l.b_tops = b_dense ? n : n / 8;
    l.found = 2 * CF_CGEMM_FOUND * warps * (!a_dense + !b_dense);
    l.part = !a_dense || a_row > 512 ? 256 : (int)(a_row + chunk - 1) / chunk * chunk;
    l.a_lows = m * l.part / 8;
    l.b_lows = n * l.part / 8;
    l.factors = m + n + n / 8;
    l.tables = scaled ? cf_fp16_cgemm_lines(4 * (l.factors + 2 * (l.a_tops + l.b_tops) + l.found + warps)) : 0;
    l.slice = stages * l.raw + (scaled ? cf_fp16_cgemm_lines(l.a_lows + l.b_lows) : 0);
    l.shared = l.tables + slices * l.slice;
    return l;
}

#endif
