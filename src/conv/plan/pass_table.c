/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/plan.h"

_Static_assert(1 << CF_PASS_FORWARD == CONV_FFT_FORWARD && 1 << CF_PASS_DATA == CONV_FFT_BACKWARD_DATA &&
                   1 << CF_PASS_WEIGHTS == CONV_FFT_BACKWARD_WEIGHTS,
               "1 << pass is its conv_fft_pass");

const cf_pass_row cf_pass_table[CF_PASS_COUNT] = {
    [CF_PASS_FORWARD] = {CF_Y, {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y}, CF_CGEMM_FORWARD, "forward"},
    [CF_PASS_DATA] = {CF_X, {CF_ROLE_GX, CF_ROLE_W, CF_ROLE_GY}, CF_CGEMM_BACKWARD_DATA, "backward data"},
    [CF_PASS_WEIGHTS] = {CF_W, {CF_ROLE_X, CF_ROLE_W, CF_ROLE_Y}, CF_CGEMM_BACKWARD_WEIGHTS, "backward weights"},
};
