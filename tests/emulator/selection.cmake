# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -P selection.cmake, in every build: writes the selection of cases (tests/support/selection.h) to
# two files. If selection.txt changes, the sources of kernels are written again. share.h is for tests that select cases
# while they are compiled. A file whose content stays the same is not touched.
set(seed "$ENV{CONV_FFT_TEST_SEED}")
set(share "$ENV{CONV_FFT_TEST_SHARE}")
if(seed STREQUAL "")
  set(seed 1)
endif()
if(share STREQUAL "")
  set(share 10)
endif()
string(LENGTH "${seed}" length)
if(NOT seed MATCHES "^(0x[0-9a-fA-F]+|0|[1-9][0-9]*)$" OR length GREATER 20)
  message(FATAL_ERROR "CONV_FFT_TEST_SEED=${seed}: a seed is a whole number of up to 64 bits")
endif()
set(percent "${share}")
if(share STREQUAL "core")
  set(percent 0)
elseif(NOT share MATCHES "^([1-9][0-9]|100)$")
  message(FATAL_ERROR "CONV_FFT_TEST_SHARE=${share}: a share is 10 to 100 percent, or `core`")
endif()
if(percent EQUAL 0) # without a share the seed chooses nothing
  set(chosen 0)
else()
  set(chosen "${seed}")
endif()
file(CONFIGURE OUTPUT "${FOLDER}/selection.txt" CONTENT "${seed} ${share} $ENV{CONV_FFT_TEST_CASE}\n" @ONLY)
file(CONFIGURE OUTPUT "${FOLDER}/share.h" CONTENT "#define SIMT_SEED ${chosen}u\n#define SIMT_SHARE ${percent}\n" @ONLY)
