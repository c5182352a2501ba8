// SPDX-License-Identifier: Apache-2.0
// conv/fused/shared_memory.cuh and the plans of its family: cf_fused_run() itself, with launches in the emulator.
// Spectra of the weights are computed by the definition of the transform, in double.
#include "check.h"
#include "kernels/emitted.h"
#include "kernels/fft_windows.h"
#include "kernels/fused_registration.h"

extern "C" {
#include "conv/long1d/long1d.h"
#include "conv/plan/spectra.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/launch.h"
#include "fbfft/plan/gpu_transform.h"
#include "kernels/fused_cases.h"
#include "reference/dtype.h"
}

#include <cmath>
#include <deque>

namespace {

struct Kernel {
    std::uint64_t hash;
    fused_body body;
};
std::vector<Kernel> &kernels() {
    static std::vector<Kernel> all;
    return all;
}

// The kernels that the library has built, and the error of a launch.
struct Built {
    cf_kernel kernel;
    const Kernel *registered;
};
struct Run {
    int number;
    std::deque<Built> built;
    std::string fault;
} run;

// ---- the weights' transforms

double rounded_part(conv_fft_dtype type, double value) {
    unsigned char memory[8];
    ref_store(type, memory, value);
    return ref_load(type, memory);
}

struct Spectrum {
    const cf_fft_problem &problem;
    unsigned char *memory;
    conv_fft_dtype type() const { return problem.transform.spectrum.dtype; }
    // Visit (place, point of the basis, the point of its mirror image) of a row and a column.
    template <class F> void each_bin(std::int64_t row, std::int64_t column, F f) const {
        const std::int64_t *const n = problem.transform.spectrum.basis, *const stride = problem.layout.axis_stride;
        const std::int64_t first = row * problem.layout.sample_stride + column * problem.layout.channel_stride;
        for (std::int64_t k0 = 0; k0 < n[0]; ++k0)
            for (std::int64_t k1 = 0; k1 < n[1]; ++k1)
                for (std::int64_t k2 = 0; k2 <= n[2] / 2; ++k2)
                    f(first + k0 * stride[0] + k1 * stride[1] + k2 * stride[2], (k0 * n[1] + k1) * n[2] + k2,
                      ((n[0] - k0) % n[0] * n[1] + (n[1] - k1) % n[1]) * n[2] + (n[2] - k2) % n[2]);
    }
    unsigned char *at(std::int64_t place, int part) const {
        return memory + std::size_t(2 * place + part) * ref_dtype_size(type());
    }
};

void transform_weights(const cf_fft_problem &problem, const cf_gpu_transform_call &call) {
    const cf_transform_desc &t = problem.transform;
    const Windows windows(problem, call.rows);
    const Spectrum spectrum{problem, static_cast<unsigned char *>(const_cast<void *>(call.spectrum))};
    unsigned char *const signal = static_cast<unsigned char *>(const_cast<void *>(call.signal));
    const std::size_t element = ref_dtype_size(t.tensor.dtype);
    for (std::int64_t row = 0; row < call.rows; ++row)
        for (std::int64_t column = 0; column < t.spectrum.columns; ++column) {
            std::vector<double> x = windows.zeros();
            if (!t.inverse)
                windows.each_point(row, column, [&](std::int64_t point, std::int64_t at) {
                    x[std::size_t(2 * point)] = ref_load(t.tensor.dtype, signal + std::size_t(at) * element);
                });
            else
                spectrum.each_bin(row, column, [&](std::int64_t place, std::int64_t point, std::int64_t mirror) {
                    for (int part = 0; part < 2; ++part) {
                        const double v = ref_load(t.spectrum.dtype, spectrum.at(place, part));
                        x[std::size_t(2 * mirror + part)] = part ? -v : v;
                        x[std::size_t(2 * point + part)] = part && point == mirror ? 0 : v;
                    }
                });
            windows.transform(x);
            if (!t.inverse)
                spectrum.each_bin(row, column, [&](std::int64_t place, std::int64_t point, std::int64_t) {
                    for (int part = 0; part < 2; ++part)
                        ref_store(t.spectrum.dtype, spectrum.at(place, part), x[std::size_t(2 * point + part)]);
                });
            else
                windows.each_point(row, column, [&](std::int64_t point, std::int64_t at) {
                    unsigned char *const to = signal + std::size_t(at) * element;
                    const double value = rounded_part(t.spectrum.dtype, t.scale * x[std::size_t(2 * point)]);
                    ref_store(t.tensor.dtype, to, value + (call.accumulate ? ref_load(t.tensor.dtype, to) : 0));
                });
        }
}

// ---- what the cases must have led to

struct Covered {
    std::string what;
    bool seen;
};
std::vector<Covered> &covered() {
    static std::vector<Covered> all;
    return all;
}
void cover(const std::string &what, bool seen) {
    if (seen && coverage_feature)
        coverage_feature(what.c_str());
    for (Covered &c : covered())
        if (c.what == what) {
            c.seen = c.seen || seen;
            return;
        }
    covered().push_back({what, seen});
}

int last_radix(const cf_shared_fft_config &c) {
    const int x = c.problem.fft.transform.spectrum.basis[0] > 1 ? 0 : 1;
    return c.radix[x][2] > 1 ? c.radix[x][2] : c.radix[x][1] > 1 ? c.radix[x][1] : c.radix[x][0];
}

bool moved(const cf_layer &layer, int pass, const cf_strategy &s) {
    return cf_fused_window(&layer, pass, &s, CF_X).axis[2].first !=
           cf_strategy_window(&layer, &s, cf_pass_table[pass].role[CF_X]).axis[2].first;
}

// register_resident.cuh: which planes stay in registers, and how the others are loaded.
void note_kept(const cf_fused_config &c) {
    static const char *const forms[] = {"scattered", "gathered", "summed"};
    const cf_shared_fft_config &t = c.tile[0][0];
    const int tasks = int(t.problem.fft.transform.spectrum.basis[2] / 2 + 1) * t.radix[1][0];
    for (const int form : {CF_FUSED_SCATTER, CF_FUSED_GATHER, CF_FUSED_WEIGHTS}) {
        const bool is = c.resident && c.form == form;
        cover(std::string("whole rows ") + forms[form], is && c.whole_rows);
        cover(std::string("whole rows of 16 bits ") + forms[form],
              is && c.whole_rows &&
                  c.tile[form != CF_FUSED_GATHER][0].problem.fft.transform.tensor.dtype != CONV_FFT_FP32);
        cover(std::string("parts of rows ") + forms[form], is && !c.whole_rows);
        cover(std::string("bulk copies of what is ") + forms[form], is && c.bulk && !c.whole_rows);
        cover(std::string("other copies of what is ") + forms[form], is && !c.bulk);
        cover(std::string("several planes of one thread ") + forms[form], is && t.planes > t.threads / tasks);
        cover(std::string("weights ahead of what is ") + forms[form],
              is && c.prefetch > 0 && c.prefetch < (form == CF_FUSED_GATHER ? c.out : c.in));
        cover(std::string("all weights ahead of what is ") + forms[form],
              is && c.prefetch == (form == CF_FUSED_GATHER ? c.out : c.in));
        cover(std::string("no weights ahead of what is ") + forms[form], is && c.bulk && c.prefetch == 0);
    }
    cover("threads with tasks of several planes each", c.resident && t.threads >= 2 * tasks && t.planes > 1);
    cover("planes that stay, columns of one radix", c.resident && t.radix[1][0] == 1);
}

// nhwc_transpose.c: planes of channels, and channels of planes.
void note_transpose(const cf_nhwc_transpose &t) {
    const bool makes = t.blocks > 0 && !t.reads;
    for (const bool x : {false, true}) {
        const std::string of = x ? " of x" : " of y";
        cover("planes made of channels" + of, t.blocks > 0 && t.reads && t.x == x);
        cover("channels made of planes" + of, makes && t.x == x);
    }
    cover("channels turned several at a time", t.blocks > 0 && t.vector_width > 1 && t.tensor.dtype == CONV_FFT_FP32);
    cover("channels turned one by one", t.blocks > 0 && t.vector_width == 1);
    cover("channels of 16 bits turned", makes && t.vector_width == 8);
    cover("more channels turned than a block has", t.blocks > 0 && t.extent[1] > 32 && t.extent[1] % 32);
}

void note_config(const fused_opened &o, int pass, const cf_fused_config &c, const cf_strategy &s) {
    const cf_shared_fft_config &x = c.tile[0][0], &y = c.tile[1][0];
    const cf_window &of_x = x.problem.fft.transform.window, &of_y = y.problem.fft.transform.window;
    const std::int64_t planes = c.form == CF_FUSED_WEIGHTS ? c.groups : c.rows * c.groups;
    cover("one plane to one", c.form == CF_FUSED_SCATTER && c.in == 1 && c.out == 1);
    for (const bool resident : {false, true}) {
        const bool scatter = c.resident == resident && c.form == CF_FUSED_SCATTER,
                   gather = c.resident == resident && c.form == CF_FUSED_GATHER,
                   weights = c.resident == resident && c.form == CF_FUSED_WEIGHTS;
        const auto what = [&](const char *text) { return resident ? std::string(text) + ", which stay" : text; };
        cover(what("one plane to several"), scatter && c.in == 1 && c.out > 1);
        cover(what("several planes to more"), scatter && c.in > 1 && c.chunk == c.out);
        cover(what("outputs parted that planes scatter to"), scatter && c.chunk < c.out);
        cover(what("several planes to one"), gather && c.out == 1);
        cover(what("several planes to fewer"), gather && c.out > 1 && c.chunk == c.out);
        cover(what("weights, several"), weights && c.in > 1 && (resident || c.chunk == c.out) && c.out > 1);
        cover(what("outputs parted of weights"), weights && c.chunk < c.out);
    }
    cover("outputs parted that gather planes", c.form == CF_FUSED_GATHER && c.chunk < c.out);
    cover("weights, one by one", c.form == CF_FUSED_WEIGHTS && c.in == 1 && c.out == 1);
    note_kept(c);
    note_transpose(c.transpose);
    cover("sums of planes in registers", c.sums && x.kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX);
    cover("sums of lines in registers", c.sums && x.kind == CF_SHARED_FFT_PACKED_REAL);
    cover("sums of steps too long for registers to hold both factors", c.sums && last_radix(x) > 16);
    cover("sums in shared memory", c.form == CF_FUSED_WEIGHTS && !c.sums);
    const int last = x.radix[2][2] > 1 ? x.radix[2][2] : x.radix[2][1];
    const bool mirrors = x.mirrors && x.kind == CF_SHARED_FFT_PACKED_REAL && last > 1;
    const bool odd = mirrors && x.radix[2][0] * x.radix[2][1] * x.radix[2][2] / last % 2;
    cover("mirrored tasks", mirrors && !odd);
    cover("mirrored tasks, one of them alone", odd);
    cover("slices of several rows", c.slices > 1 && c.rows > c.slices);
    cover("slices of different rows", c.slices > 1 && c.rows % c.slices);
    cover("slices that several threads add", c.slices > CF_FEW_SLICES);
    cover("slices in several batches", c.slices > 16 * CF_FEW_SLICES);
    cover("slices of one row", c.slices > 1 && c.rows == c.slices);
    cover("one slice", c.form == CF_FUSED_WEIGHTS && c.slices == 1);
    cover("blocks that planes do not fill", planes % x.planes);
    cover("several blocks of several planes", x.planes > 1 && c.blocks > 1);
    cover("one plane to a block", x.planes == 1);
    cover("neighbours differ in the group", !c.rows_first && c.form != CF_FUSED_WEIGHTS);
    cover("tiles", cf_window_tiles(&of_x) > 1);
    cover("shifts", cf_window_shifts(&of_x) > 1);
    cover("phases that scatter", c.form == CF_FUSED_SCATTER && cf_window_phases(&of_x) > 1);
    cover("phases scattered to", c.form == CF_FUSED_SCATTER && cf_window_phases(&of_y) > 1);
    cover("phases that gather", c.form == CF_FUSED_GATHER && cf_window_phases(&of_x) > 1);
    cover("phases gathered in", c.form == CF_FUSED_GATHER && cf_window_phases(&of_y) > 1);
    cover("weights of phases", c.form == CF_FUSED_WEIGHTS && cf_window_phases(&of_x) > 1);
    cover("planes touch", x.planes_interleaved && y.planes_interleaved);
    for (const int vector_width : {1, 2, 4, 8}) {
        const bool interleaved = x.planes_interleaved && y.planes_interleaved && x.vector_width == vector_width &&
                                 y.vector_width == vector_width;
        cover("channels interleaved, " + std::to_string(vector_width), interleaved);
        cover("units beyond the last channel, " + std::to_string(vector_width),
              vector_width == 8 || (interleaved && planes % x.planes));
        cover("several units of channels, " + std::to_string(vector_width),
              vector_width == 8 || (interleaved && x.planes > vector_width));
    }
    cover("channels interleaved, staged", x.planes_interleaved && x.vector_width > 1 && x.staged);
    cover("channels interleaved, lines",
          x.planes_interleaved && x.vector_width > 1 && x.kind == CF_SHARED_FFT_PACKED_REAL);
    cover("channels interleaved, FP32",
          x.planes_interleaved && x.vector_width == 4 && x.problem.fft.transform.tensor.dtype == CONV_FFT_FP32);
    cover("channels interleaved, three axes",
          x.planes_interleaved && x.vector_width > 1 && x.problem.fft.transform.spectrum.basis[0] > 1);
    cover("rows in pairs", x.kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX);
    cover("halved lines", x.kind == CF_SHARED_FFT_PACKED_REAL);
    cover("single lines", x.kind == CF_SHARED_FFT_UNPACKED_REAL);
    cover("staged", x.staged);
    cover("staged, by four", x.vector_width == 4 || y.vector_width == 4);
    cover("staged, by two", x.vector_width == 2 || y.vector_width == 2);
    cover("two steps, by four",
          x.vector_width == 4 && x.radix[2][1] > 1 && x.kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX);
    cover("halved lines, by four", x.vector_width == 4 && x.kind == CF_SHARED_FFT_PACKED_REAL);
    cover("16 bits, by four", x.vector_width == 4 && x.problem.fft.transform.tensor.dtype != CONV_FFT_FP32);
    cover("rows of x moved up", s.basis[2] > 1 && moved(o.plan->layer, pass, s));
    cover("sides of different width", x.vector_width != y.vector_width);
    cover("two steps along axis 0", x.radix[0][1] > 1);
    cover("two steps along axis 1", x.radix[1][1] > 1);
    cover("two steps along axis 2", x.radix[2][1] > 1);
    cover("three steps along axis 2", x.radix[2][2] > 1 || sizeof(real) == 8);
    cover("an odd last axis", s.basis[2] % 2 && s.basis[2] > 1);
    cover("an odd axis 1", s.basis[1] % 2 && s.basis[1] > 1);
    cover("a second kernel for other pointers", cf_fused_variants(&c) == 2);
}

void note_lines(const fused_opened &o, int pass, const cf_strategy &s) {
    cf_long1d_config c;
    CHECK(cf_long1d_configure(&o.plan->layer, pass, &s, &o.gpu.properties, &c) == CONV_FFT_SUCCESS);
    const std::int64_t half = cf_long1d_points(&c) * cf_long1d_parts(&c);
    cover("long lines of a warp", c.one.lines > 1 && c.rows * c.groups % c.one.lines);
    cover("long lines of a block", c.one.lines == 1 && cf_long1d_parts(&c) == 1);
    cover("long lines of two steps", c.one.radix[2] == 1);
    cover("long lines in pieces", cf_long1d_parts(&c) > 1 && c.column[1] == 1);
    cover("long lines in many pieces", c.column[1] > 1);
    cover("groups one after the other", c.together < c.groups);
    cover("one half of a line has data", c.x.count <= half && c.y.count <= half);
    cover("both halves of a line have data", c.x.count > half && c.y.count > half);
    cover("long taps that wrap around", c.w.count - 1 > c.pad);
    cover("long lines of several groups lie in one another", c.groups_first);
    cover("slices of long lines", c.slices > 1 && !cf_long1d_adds(&c));
    cover("slices of long lines that another kernel adds", cf_long1d_adds(&c));
    cover("long lines of 16 bits", c.x.dtype != CONV_FFT_FP32);
}

void note_case(const fused_opened &o) {
    cf_long1d_config both;
    const bool shares = o.plan->shares_gy;
    if (shares)
        CHECK(cf_long1d_configure(&o.plan->layer, CF_LONG1D_BOTH, &o.plan->pass[CF_PASS_WEIGHTS].strategy,
                                  &o.gpu.properties, &both) == CONV_FFT_SUCCESS);
    cover("both gradients of long lines", shares && cf_long1d_parts(&both) == 1);
    cover("both gradients of long lines in pieces", shares && cf_long1d_parts(&both) > 1);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        cf_fused_config c;
        if (!(o.plan->passes & 1 << pass) || o.problem.batch == 0)
            continue;
        const cf_strategy &s = o.plan->pass[pass].strategy;
        if (s.family == &cf_long1d_family) {
            note_lines(o, pass, s);
            continue;
        }
        CHECK(cf_fused_configure(&o.plan->layer, pass, &s, &o.gpu.properties, &c) == CONV_FFT_SUCCESS);
        note_config(o, pass, c, s);
    }
}

// ---- the tests

void all_cases() {
    const fused_case *cases;
    const int count = fused_case_list(FACTS, &cases);
    for (int i = 0; i < count; ++i) {
        if (fused_case_is_double(&cases[i]) != (sizeof(real) == 8) || fused_case_part(i) == TEST_LEFT_OUT)
            continue;
        char name_text[FUSED_NAME_BYTES];
        fused_case_name(&cases[i], name_text, sizeof name_text);
        const std::string name = name_text;
        begin_case(name);
        run = Run{i, {}, {}};
        fused_opened opened;
        if (!CHECK_TEXT(fused_case_open(&cases[i], i, FACTS, &opened), name + ": " + conv_fft_last_error()))
            continue;
        note_case(opened);
        CHECK_TEXT(fused_case_check(&cases[i], i, &opened), name);
        CHECK_TEXT(run.fault.empty(), name + ": " + run.fault);
        fused_case_close(&opened);
    }
}

// FP64 has too few cases to cover everything, and so has the replay of one case.
void cases_cover() {
    const bool demanded = sizeof(real) == 4 && !*emitted_selection[2][1];
    for (const Covered &c : covered())
        CHECK_TEXT(c.seen || !demanded, std::string("no case has ") + c.what);
}

} // namespace

Registration::Registration(std::uint64_t hash, fused_body body) { kernels().push_back({hash, body}); }

// ---- in the place of the library's own

extern "C" conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count,
                                                   cf_kernel **built) {
    for (int i = 0; i < count; ++i) {
        run.built.push_back({});
        run.built.back().kernel.gpu = gpu;
        const std::uint64_t hash = fused_text_hash(sources[i].text);
        for (const Kernel &k : kernels())
            if (k.hash == hash)
                run.built.back().registered = &k;
        built[i] = &run.built.back().kernel;
    }
    return CONV_FFT_SUCCESS;
}

extern "C" void __wrap_cf_kernel_destroy(cf_kernel *) {}

extern "C" conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *shape, void **parameters,
                                                  cf_cu_stream) {
    for (const Built &b : run.built) {
        if (&b.kernel != kernel || !b.registered)
            continue;
        simt::options options;
        options.order = simt::order::random;
        options.seed = unsigned(run.number);
        const simt::result r = simt::launch(
            dim3(shape->grid[0], shape->grid[1], shape->grid[2]),
            dim3(shape->block[0], shape->block[1], shape->block[2]), shape->dynamic_shared,
            [&] { b.registered->body(parameters); }, options);
        if (!r.ok() && run.fault.empty())
            run.fault = r.first();
        return CONV_FFT_SUCCESS;
    }
    run.fault = "a kernel is launched that is not expected";
    return CONV_FFT_SUCCESS;
}

extern "C" conv_fft_status __wrap_cf_gpu_transforms_list(cf_gpu_transform *const *, int) { return CONV_FFT_SUCCESS; }

extern "C" conv_fft_status __wrap_cf_gpu_transform_run(const cf_gpu_transform *transform,
                                                       const cf_gpu_transform_call *call, struct CUstream_st *) {
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    CHECK(call->first == 0 && call->base == 0 && call->groups == 1 && !call->bias);
    transform_weights(transform->problem, *call);
    return CONV_FFT_SUCCESS;
}

extern "C" conv_fft_status __wrap_cf_gpu_zero(cf_device *, const cf_tensor *tensor, const std::int64_t extents[5],
                                              void *data, struct CUstream_st *) {
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    const std::int64_t strides[] = {tensor->sample_stride, tensor->channel_stride, tensor->axis_stride[0],
                                    tensor->axis_stride[1], tensor->axis_stride[2]};
    std::int64_t count = 1;
    for (int d = 0; d < 5; ++d)
        count *= extents[d];
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t rest = i, at = 0;
        for (int d = 4; d >= 0; rest /= extents[d--])
            at += rest % extents[d] * strides[d];
        ref_store(tensor->dtype, static_cast<unsigned char *>(data) + std::size_t(at) * ref_dtype_size(tensor->dtype),
                  0);
    }
    return CONV_FFT_SUCCESS;
}

extern "C" conv_fft_status __wrap_cf_gpu_check_in_context(const cf_gpu *, const cf_gpu_argument *, int, cf_cu_stream) {
    return CONV_FFT_SUCCESS;
}

int main() {
    choose_as_emitted();
    return run_tests({{"fused layers", all_cases}, {"what the cases cover", cases_cover}});
}
