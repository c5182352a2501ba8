/* SPDX-License-Identifier: Apache-2.0 */
/* Corrections of the fused model for single channels. */
#ifndef CF_CONV_FUSED_PREDICT_SHARE_H
#define CF_CONV_FUSED_PREDICT_SHARE_H

#include "conv/plan/run.h"

/* The work of planes with short lines, relative to other planes of as many points. */
double cf_cost_plane_share(const cf_layer *layer, const int64_t basis[3]);

/* The time of planes in channels-last layout, relative to channels-first layout. plane: bytes of a spectrum. */
double cf_cost_channels_last_share(const cf_layer *layer, int pass, const int64_t basis[3], double plane);

#endif
