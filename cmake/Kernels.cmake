# SPDX-License-Identifier: Apache-2.0
# The device headers of src/fbfft/kernels as one text inside the library, for the compiler at run time: in the order of
# their includes, without the lines that include.
set(kernel_text "")
foreach(header platform complex dft line copy real2d real1d pairs1d)
  set(path "${PROJECT_SOURCE_DIR}/src/fbfft/kernels/${header}.cuh")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" content)
  string(REGEX REPLACE "#(include|pragma once)[^\n]*\n" "" content "${content}")
  string(APPEND kernel_text "${content}")
endforeach()
file(WRITE "${PROJECT_BINARY_DIR}/kernel_text.cuh" "${kernel_text}")
file(READ "${PROJECT_BINARY_DIR}/kernel_text.cuh" kernel_bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," kernel_bytes "${kernel_bytes}")
set(kernel_source "#include \"fbfft/kernel_text.h\"\nconst char cf_fbfft_kernel_text[] = {${kernel_bytes}0};\n")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/kernel_text.c" CONTENT "${kernel_source}" @ONLY)
