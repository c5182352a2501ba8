/* SPDX-License-Identifier: Apache-2.0 */
/* Whole layers of family `staged` as a GPU runs them, with scales, chunks and kept spectra. Each kernel of a plan is
 * compiled for the emulator at its first launch, from the text that NVRTC would get. */
#include "check.h"
#include "simt.h"

extern "C" {
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/kernel.h"
#include "kernels/staged_cases.h"
#include "support/temp_dirs.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <string>

namespace {

// ---- kernels

typedef void (*Body)(void **parameters);

struct Kernel {
    cf_kernel kernel;
    std::string text;
    bool doubles;
};

std::deque<Kernel> kernels;         // of the plan that is there
std::map<std::string, Body> bodies; // by type, name and text
std::string directory, fault;       // where they are compiled; the first that was found

Body compile(const Kernel &k) {
    Body &body = bodies[(k.doubles ? "double " : "") + (k.kernel.name + k.text)];
    if (body)
        return body;
    const std::string stem = directory + "/" + std::to_string(bodies.size());
    FILE *const file = std::fopen((stem + ".cpp").c_str(), "w");
    if (!file)
        return nullptr;
    std::fprintf(file,
                 "%s#include <simt.h>\n#include <utility>\n%s\n"
                 "template <class... A, std::size_t... I>\n"
                 "void call_with(void (*f)(A...), void **p, std::index_sequence<I...>) {\n"
                 "    f(*static_cast<std::remove_const_t<A> *>(p[I])...);\n}\n"
                 "template <class... A> void call_with(void (*f)(A...), void **p) {\n"
                 "    call_with(f, p, std::index_sequence_for<A...>());\n}\n"
                 "extern \"C\" void test_body(void **p) { call_with(&%s, p); }\n",
                 k.doubles ? "#define CF_REAL double\n" : "", k.text.c_str(), k.kernel.name);
    std::fclose(file);
    const std::string command = COMPILER " " + stem + ".cpp -o " + stem + ".so";
    void *const library =
        std::system(command.c_str()) == 0 ? dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library)
        body = reinterpret_cast<Body>(dlsym(library, "test_body"));
    return body;
}

void note(const std::string &what) {
    if (fault.empty())
        fault = what;
}

} // namespace

extern "C" {

conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **built) {
    for (int i = 0; i < count; ++i) {
        kernels.push_back({});
        Kernel &k = kernels.back();
        char *const text = cf_source_join(&sources[i]);
        k.text = text ? text : "";
        std::free(text);
        for (const char *const *option = sources[i].options; *option; ++option)
            k.doubles = k.doubles || std::strstr(*option, "double");
        std::snprintf(k.kernel.name, sizeof k.kernel.name, "%s", sources[i].name);
        k.kernel.gpu = gpu;
        built[i] = &k.kernel;
        if (int64_t(sources[i].dynamic_shared) > gpu->properties.shared_per_block)
            note(k.kernel.name + std::string(" asks for more shared memory than there is"));
    }
    return CONV_FFT_SUCCESS;
}

void __wrap_cf_kernel_destroy(cf_kernel *) {}

conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *l, void **parameters, cf_cu_stream) {
    for (const Kernel &k : kernels) {
        if (&k.kernel != kernel)
            continue;
        const Body body = compile(k);
        if (!body)
            break;
        simt::options wanted;
        wanted.order = simt::order::random;
        wanted.shared_limit = size_t(kernel->gpu->properties.shared_per_block);
        const simt::result r = simt::launch(
            dim3(l->grid[0], l->grid[1], l->grid[2]), dim3(l->block[0], l->block[1], l->block[2]), l->dynamic_shared,
            [&] { body(parameters); }, wanted);
        if (!r.ok())
            note(kernel->name + (": " + r.first()));
        return CONV_FFT_SUCCESS;
    }
    return cf_fail(CONV_FFT_COMPILE_ERROR, "%s does not compile, or is not of this plan", kernel->name);
}

conv_fft_status __wrap_cf_gpu_check_in_context(const cf_gpu *, const cf_gpu_argument *, int, cf_cu_stream) {
    return CONV_FFT_SUCCESS;
}

const char *staged_end_kernels(void) {
    static std::string found;
    found = fault;
    fault.clear();
    kernels.clear();
    return found.c_str();
}

conv_fft_status __wrap_cf_gpu_fill(const cf_gpu *, void *memory, unsigned char value, size_t bytes, cf_cu_stream) {
    std::memset(memory, value, bytes);
    return CONV_FFT_SUCCESS;
}
}

namespace {

void layers() {
    void *scratch = nullptr;
    scratch_create(&scratch);
    directory = static_cast<const char *>(scratch);
    CHECK(staged_cases_run(FACTS) == 0);
    scratch_remove(&scratch);
}

} // namespace

int main() { return run_tests({{"layers", layers}}); }
