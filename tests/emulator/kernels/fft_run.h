// SPDX-License-Identifier: Apache-2.0
// The current case of a program that runs emitted transforms: its kernels, its memory, and the call of
// cf_gpu_transform_run().
#ifndef SIMT_TILE_RUN_H
#define SIMT_TILE_RUN_H

#include "kernels/fft_registration.h"

extern "C" {
#include "fbfft/plan/gpu_transform.h"
#include "kernels/fft_cases.h"
#include "reference/dtype.h"
#include "support/fft_check.h"
#include "support/random_problems.h"
}

#include <cstring>
#include <string>
#include <vector>

namespace {

struct Kernel {
    int number, pass, variant;
    tile_body body;
};
std::vector<Kernel> &kernels() {
    static std::vector<Kernel> all;
    return all;
}

typedef std::vector<unsigned char> Bytes;

double rounded(double x, conv_fft_dtype type) {
    unsigned char memory[8];
    ref_store(type, memory, x);
    return ref_load(type, memory);
}
double random_rounded(generator &g, conv_fft_dtype type) { return rounded(random_value(&g), type); }

// The current launch's case, and the errors of the launch.
struct Run {
    const tile_case *c;
    int number;
    cf_gpu_transform transform;
    cf_kernel kernel[CF_FFT_MAX_PASSES][2];
    std::string fault;
} run;
cf_kernel pair_kernel[2];

constexpr double BIAS = 0.625;
double held(int64_t at) { return double(at % 61) / 32 - 1; } // what an accumulating transform adds to
double bias_of(int64_t group, int64_t channel) { return BIAS - double(group) - 0.25 * double(channel); }

// Memory between guards, at an offset of some bytes. With sanitizers there is no guard behind it: sanitizers find more.
class Memory {
  public:
    Memory(size_t bytes, size_t shift, const Bytes *content)
        : size(bytes), before(GUARD + shift), after(AFTER), base(new unsigned char[before + bytes + after]) {
        std::memset(base, FFT_POISON, before + bytes + after);
        if (content)
            std::memcpy(data(), content->data(), bytes);
    }
    ~Memory() { delete[] base; }
    Memory(const Memory &) = delete;
    unsigned char *data() { return base + before; }
    bool guards_intact() const { return poisoned(base, before) && poisoned(base + before + size, after); }
    bool all_poisoned() const { return poisoned(base, before + size + after); }

  private:
    static bool poisoned(const unsigned char *p, size_t count) {
        for (size_t i = 0; i < count; ++i)
            if (p[i] != FFT_POISON)
                return false;
        return true;
    }
    static constexpr size_t GUARD = 64;
#ifdef __SANITIZE_ADDRESS__
    static constexpr size_t AFTER = 0;
#else
    static constexpr size_t AFTER = 64;
#endif
    size_t size, before, after;
    unsigned char *base;
};

// All rows at once, or in the order that overlapping rows need.
conv_fft_status execute(cf_gpu_transform_call call, int64_t rows, int64_t ordered) {
    run.transform.problem.transform.ordered = ordered;
    call.first = 0;
    call.rows = rows;
    return cf_gpu_transform_run(&run.transform, &call, nullptr);
}

// Sometimes even rows are processed before odd ones. Channels-first planes have no rows.
int64_t overlapping_rows(int64_t rows) {
    return run.number % 3 == 0 && rows % 2 == 0 && run.transform.problem.transform.inverse &&
                   !run.transform.passes.pass[0].plain
               ? 2
               : 1;
}

std::string name_of(const tile_case &c) {
    char text[TILE_NAME_BYTES];
    tile_case_name(&c, text, sizeof text);
    return text;
}

} // namespace

#endif
