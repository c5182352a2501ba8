// SPDX-License-Identifier: Apache-2.0
// Which places of a program each case reaches: kernels are compiled with -fsanitize-coverage=trace-pc, and each basic
// block calls __sanitizer_cov_trace_pc(). scripts/emulator_core.py reads the file SIMT_COVERAGE. It has lines `case
// NAME` and `feature TEXT`, and after a case the addresses that it reached, in hexadecimal.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t SLOTS = size_t(1) << 22;
std::vector<uintptr_t> slots(SLOTS); // a hash table of the addresses of this case
std::vector<size_t> reached;         // which slots they have
bool active = false;
FILE *file = nullptr;

void end_case() {
    active = false;
    for (const size_t i : reached) {
        std::fprintf(file, "%zx\n", size_t(slots[i]));
        slots[i] = 0;
    }
    reached.clear();
}

} // namespace

extern "C" void coverage_case(const char *name);
extern "C" void coverage_case(const char *name) {
    if (!file) {
        const char *path = std::getenv("SIMT_COVERAGE");
        file = path ? std::fopen(path, "w") : nullptr;
        if (!file) {
            std::perror("SIMT_COVERAGE");
            std::exit(2);
        }
        std::atexit([] {
            end_case();
            std::fclose(file);
        });
    }
    end_case();
    std::fprintf(file, "case %s\n", name);
    active = true;
}

extern "C" void coverage_feature(const char *text);
extern "C" void coverage_feature(const char *text) { std::fprintf(file, "feature %s\n", text); }

extern "C" void __sanitizer_cov_trace_pc(void);
extern "C" void __sanitizer_cov_trace_pc(void) {
    if (!active)
        return;
    const uintptr_t pc = uintptr_t(__builtin_return_address(0));
    size_t i = pc * 0x9e3779b97f4a7c15u >> 42;
    while (slots[i] && slots[i] != pc)
        i = (i + 1) % SLOTS;
    if (!slots[i]) {
        slots[i] = pc;
        reached.push_back(i);
    }
}
