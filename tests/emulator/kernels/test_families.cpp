/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of families `cufft` and `cudnn`, launched by the families themselves. family_cases.c has the problems. */
#include "check.h"

#include <conv/cudnn/fallback.cuh>
#include <conv/cufft/pad_crop.cuh>

extern "C" {
#include "kernels/family_cases.h"
#include "support/temp_dirs.h"
}

#include <cstring>

namespace {

template <class T> T &parameter(void **parameters, int i) { return *static_cast<T *>(parameters[i]); }

void body(const char *kernel, void **p) {
    if (!std::strcmp(kernel, "cf_cufft_pad"))
        cufft_pad(parameter<cf_cufft_planes>(p, 0), parameter<void *>(p, 1), parameter<real *>(p, 2));
    else if (!std::strcmp(kernel, "cf_cufft_crop"))
        cufft_crop(parameter<cf_cufft_planes>(p, 0), parameter<real *>(p, 1), parameter<void *>(p, 2),
                   parameter<void *>(p, 3));
    else if (!std::strcmp(kernel, "cf_cufft_to_spectrum"))
        cufft_transpose<true>(parameter<cf_cufft_planes>(p, 0), parameter<cplx *>(p, 1), parameter<cplx *>(p, 2));
    else if (!std::strcmp(kernel, "cf_cufft_from_spectrum"))
        cufft_transpose<false>(parameter<cf_cufft_planes>(p, 0), parameter<cplx *>(p, 1), parameter<cplx *>(p, 2));
    else if (!std::strcmp(kernel, "cf_cudnn_add"))
        cudnn_add(parameter<cf_cudnn_add_call>(p, 0));
    else if (!std::strcmp(kernel, "cf_cudnn_transpose"))
        cudnn_transpose(parameter<cf_cudnn_transpose_call>(p, 0));
    else if (!std::strcmp(kernel, "cf_cudnn_forward"))
        cudnn_plain_forward(parameter<cf_cudnn_plain_call>(p, 0));
    else if (!std::strcmp(kernel, "cf_cudnn_data"))
        cudnn_plain_data(parameter<cf_cudnn_plain_call>(p, 0));
    else if (!std::strcmp(kernel, "cf_cudnn_weights"))
        cudnn_plain_weights(parameter<cf_cudnn_plain_call>(p, 0));
    else
        CHECK_TEXT(false, kernel);
}

void families() {
    void *directory = nullptr;
    scratch_create(&directory);
    const int failures = family_cases_run(static_cast<const char *>(directory));
    CHECK(failures == 0);
    scratch_remove(&directory);
}

} // namespace

extern "C" int family_emulate(const char *kernel, const unsigned grid[3], const unsigned block[3], size_t shared,
                              void **parameters) {
    const unsigned before = simt_failures;
    CHECK_CLEAN(simt::launch(dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), shared,
                             [&] { body(kernel, parameters); }));
    return simt_failures == before ? 0 : 1;
}

int main() { return run_tests({{"families", families}}); }
