/* SPDX-License-Identifier: Apache-2.0 */
/* How a program of emitted kernels (emit.h) runs its cases. */
#ifndef SIMT_EMITTED_H
#define SIMT_EMITTED_H

#include "check.h"
#include "support/selection.h"

#include <cstdlib>
#include <string>

extern const char
    *const emitted_selection[3][2]; // variables of support/selection.h, and their values when the kernels were emitted

/* The cases whose kernels were emitted are run, even if the environment has changed since. */
inline void choose_as_emitted() {
    for (const auto &variable : emitted_selection)
        setenv(variable[0], variable[1], 1);
}

/* Coverage of each case (coverage.cpp), in programs built with it. */
extern "C" void coverage_case(const char *name) __attribute__((weak));
extern "C" void coverage_feature(const char *text) __attribute__((weak));

/* Checks that fail from now on print the command that runs this case alone. */
inline void begin_case(const std::string &name) {
    char line[2048];
    test_replay(line, sizeof line, ("CONV_FFT_TEST_CASE='" + name + "'").c_str());
    simt_replay = line;
    if (coverage_case)
        coverage_case(name.c_str());
}

#endif
