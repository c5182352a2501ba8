/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the bias with the launches that the library chooses. bias_cases.c has the cases. */
#include "check.h"

#include <conv/gpu/bias.cuh>

extern "C" {
#include "kernels/bias_cases.h"
}

namespace {

void channels_first() { CHECK(bias_cases_run("first") == 0); }
void channels_last() { CHECK(bias_cases_run("last") == 0); }
void others() { CHECK(bias_cases_run("other") == 0); }

} // namespace

extern "C" int bias_emulate(unsigned blocks, unsigned threads, size_t shared, const void *call) {
    const unsigned before = simt_failures;
    CHECK_CLEAN(simt::launch(blocks, threads, shared, [&] { sum_bias(*static_cast<const cf_bias_call *>(call)); }));
    return simt_failures == before ? 0 : 1;
}

int main() {
    return run_tests({{"channels first", channels_first}, {"channels last", channels_last}, {"others", others}});
}
