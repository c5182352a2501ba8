/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kernels: CHECK in functions, a list of them, and a last line that counts.
 *
 *     int main() { return run_tests({{"name", function}, ...}); } */
#ifndef SIMT_CHECK_H
#define SIMT_CHECK_H

#include "launch.h"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

inline unsigned simt_checks, simt_failures; /* of the test that is running */
inline std::string simt_replay;             /* a command that runs the current case alone; "": there is none */

inline bool check_that(bool good, const char *what, const char *file, int line, const std::string &text) {
    simt_checks++;
    simt_failures += !good;
    if (!good)
        std::printf("%s:%d: %s fails. %s\n", file, line, what, text.c_str());
    if (!good && !simt_replay.empty())
        std::printf("    replay: %s\n", simt_replay.c_str());
    return good;
}

#define CHECK(condition) check_that(condition, #condition, __FILE__, __LINE__, "")
#define CHECK_TEXT(condition, text) check_that(condition, #condition, __FILE__, __LINE__, text)
/** A launch without errors. */
#define CHECK_CLEAN(launched)                                                   \
    do {                                                                        \
        const simt::result clean_ = (launched);                                 \
        check_that(clean_.ok(), #launched, __FILE__, __LINE__, clean_.first()); \
    } while (0)

/** A launch without errors or bank conflicts. */
#define CHECK_CONFLICT_FREE(launched)                                                                                 \
    do {                                                                                                              \
        const simt::result free_ = (launched);                                                                        \
        check_that(free_.ok() && free_.banks.requests > 0 && free_.banks.ratio() == 1, #launched, __FILE__, __LINE__, \
                   free_.first() + free_.conflicts());                                                                \
    } while (0)

struct simt_test {
    const char *name;
    void (*run)();
};

/** A test without checks has failed. */
inline int run_tests(std::initializer_list<simt_test> tests) {
    unsigned passed = 0, failed = 0;
    for (const simt_test &test : tests) {
        simt_checks = simt_failures = 0;
        simt_replay.clear();
        test.run();
        const bool good = simt_failures == 0 && simt_checks > 0;
        std::printf("%s %s (%u checks)\n", good ? "passed" : "FAILED", test.name, simt_checks);
        passed += good;
        failed += !good;
    }
    std::printf("%u passed, %u failed\n", passed, failed);
    const char *const seed = std::getenv("CONV_FFT_TEST_SEED"); // of cases that have no line of their own (in_share.h)
    if (failed)
        std::printf("replay: make replay T=" SIMT_PROGRAM " CONV_FFT_TEST_SEED=%s\n", seed && *seed ? seed : "1");
    return failed > 0 || passed == 0;
}

#endif
