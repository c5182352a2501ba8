# SPDX-License-Identifier: Apache-2.0
# CPack runs this before it packs the files of the components.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" name)
  set(package "${CPACK_DEBIAN_${name}_PACKAGE_NAME}")
  set(folder "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/${package}")
  file(MAKE_DIRECTORY "${folder}")
  file(COPY_FILE "${CPACK_RESOURCE_FILE_LICENSE}" "${folder}/copyright")
endforeach()
