/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms from FP16 to FP16, and of FP32 by arithmetic SPLIT, for tests on either device (gpu NULL: the CPU). */
#ifndef TEST_HALF_CASES_H
#define TEST_HALF_CASES_H

#include "support/fft_cases.h"
#include "support/fft_rules.h"

/* Axes of 2^log[0] (and 2^log[1] if rank is 2) points. The scale keeps results about as large as the inputs. */
fbfft_desc half_desc(int rank, fbfft_kind kind, int log0, int log1);

/* Both directions of lines of 2^first to 2^last points, in several batches. */
void half_add_lines(fft_list *list, int first, int last);
/* Squares and rectangles of at most 2^most points, with channels too. */
void half_add_planes(fft_list *list, int most);

/* With a scale of 1 / N no step overflows: if all points are near the largest FP16 number, bin 0 is near it too, and
 * all other bins are below a thousandth of it. Without a scale, bin 0 is Inf. */
void half_check_range(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc);
/* Pointers that are not multiples of 16 bytes are refused. `why`: what the sentence says of the reason. */
void half_check_alignment(conv_fft_context *context, const fbfft_desc *desc, const char *why);

/* A row of 2^log complex points, or of twice as many reals, by arithmetic SPLIT. The scale keeps results about as large
 * as the inputs. */
fbfft_desc split_desc(fbfft_kind kind, int log);
/* An entry of 2^log[0] x 2^log[1] x 2^log[2] such points. Axes that the rank lacks come first, with log 0. */
fbfft_desc split_desc_of(fbfft_kind kind, const int log[3]);
/* Both directions of rows of 2^8 to 2^14 points, in several batches, some with channels. */
void split_add_lines(fft_list *list);
/* Both directions of planes, volumes and rows of several kernels: every length of an axis, of at most 2^most points. */
void split_add_axes(fft_list *list, int most);

#endif
