# SPDX-License-Identifier: Apache-2.0
# The library in the Python package (pyproject.toml). It is one file, because a wheel cannot have version links. The
# package also has the linked libraries that a system without compilers may lack.
set_property(TARGET conv_fft PROPERTY VERSION)
set_property(TARGET conv_fft PROPERTY SOVERSION)
set_target_properties(conv_fft PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS conv_fft LIBRARY DESTINATION conv_fft/lib COMPONENT python
        FILE_SET HEADERS DESTINATION include COMPONENT headers)
install(TARGETS compile-kernel DESTINATION conv_fft/lib/conv_fft COMPONENT python)

install(CODE "set(library \"$<TARGET_FILE:conv_fft>\")" COMPONENT python)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${library}" RESOLVED_DEPENDENCIES_VAR found
       PRE_INCLUDE_REGEXES "libjansson|libz\\.|libgomp|libomp" PRE_EXCLUDE_REGEXES ".*")
  foreach(path IN LISTS found)
    cmake_path(GET path FILENAME name)
    file(REAL_PATH "${path}" real)
    file(COPY_FILE "${real}" "${CMAKE_INSTALL_PREFIX}/conv_fft/lib/${name}")
  endforeach()]] COMPONENT python)
