/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of family `fused`. */
#pragma once

#include "conv/fused/register_resident.cuh"
#include "conv/fused/weight_sums.cuh"

/*
 * FUNCTION is one of
 *
 *     fused_scatter, fused_gather, fused_weights                shared_memory.cuh
 *     fused_register_weights                                    weight_sums.cuh
 *     resident_scatter, resident_gather, resident_weights       register_resident.cuh
 *
 * With PDL_WAIT_LATE the function itself has the PDL wait. The host prints struct Problem and this macro
 * (cf_fused_emit() in config.c).
 */
#define CF_FUSED_KERNEL(FUNCTION, THREADS, BLOCKS, PDL_WAIT_LATE)   \
    CF_KERNEL(THREADS, BLOCKS) cf_fused(const cf_fused_call call) { \
        if (!PDL_WAIT_LATE)                                         \
            cf_pdl_wait();                                          \
        FUNCTION<Problem>(call);                                    \
    }
