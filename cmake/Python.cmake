# SPDX-License-Identifier: Apache-2.0
# The Python package (pyproject.toml) installs the components library and tools. The library is one file, because a
# wheel cannot have version links.
set_property(TARGET conv_fft PROPERTY VERSION)
set_property(TARGET conv_fft PROPERTY SOVERSION)
set_target_properties(conv_fft PROPERTIES INSTALL_RPATH "$ORIGIN")

if(CMAKE_CROSSCOMPILING)
  # scripts/wheels.py: all libraries but glibc are linked statically. The compiler's own are not hidden by themselves.
  # The licences go with the library.
  file(WRITE "${PROJECT_BINARY_DIR}/exports.map" "{ global: conv_fft_*; fbfft_*; local: *; };\n")
  target_link_options(conv_fft PRIVATE "LINKER:--version-script,${PROJECT_BINARY_DIR}/exports.map")
  install(DIRECTORY "${CONV_FFT_LICENCES}" DESTINATION "${CMAKE_INSTALL_DATADIR}/conv_fft" COMPONENT library)
  return()
endif()

# The package also has the linked libraries that a system without compilers may lack.
install(CODE "set(conv_fft_file \"$<TARGET_FILE:conv_fft>\")
  set(conv_fft_folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")" COMPONENT library)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${conv_fft_file}" RESOLVED_DEPENDENCIES_VAR found
       PRE_INCLUDE_REGEXES "libjansson|libz\\.|libgomp|libomp" PRE_EXCLUDE_REGEXES ".*")
  foreach(path IN LISTS found)
    cmake_path(GET path FILENAME name)
    file(REAL_PATH "${path}" real)
    file(COPY_FILE "${real}" "${conv_fft_folder}/${name}")
  endforeach()]] COMPONENT library)
