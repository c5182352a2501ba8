/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a source of fused_emit.c: the text of a kernel with a unique name, in a namespace, and its
 * Registration. */
#ifndef SIMT_FUSED_H
#define SIMT_FUSED_H

#include "conv/fused/kernel.cuh"
#include "conv/fused/nhwc_transpose.cuh"
#include "conv/fused/weight_sums.cuh"
#include "conv/gpu/slices.cuh"
#include "conv/long1d/four_step.cuh"
#include "conv/long1d/line.cuh"

#include <functional>
#include <utility>

/* The parameters are those of cf_kernel_start(). */
typedef std::function<void(void **parameters)> fused_body;

template <class... A, std::size_t... I>
void call_with(void (*kernel)(A...), void **parameters, std::index_sequence<I...>) {
    kernel(*static_cast<const A *>(parameters[I])...);
}

struct Registration {
    Registration(std::uint64_t hash, fused_body body); /* of the whole text */
    template <class... A>
    Registration(std::uint64_t hash, void (*kernel)(A...))
        : Registration(hash, fused_body([kernel](void **parameters) {
                           call_with(kernel, parameters, std::index_sequence_for<A...>());
                       })) {}
};

#endif
