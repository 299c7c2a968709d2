# SPDX-License-Identifier: Apache-2.0
# TOCSIN_SINGLE_HEADER: the library compiled from its single header (tools/amalgamate.py), and seen by programs only
# through that header, so that the suites test it in place of the tree.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(single "${PROJECT_BINARY_DIR}/single_header")
get_target_property(sources tocsin SOURCES)
list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/src/" REGEX "^[^/]")
file(GLOB_RECURSE headers CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/include/tocsin/*.hpp" "${PROJECT_SOURCE_DIR}/src/*.hpp")
add_custom_command(OUTPUT "${single}/tocsin.hpp"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/amalgamate.py" "${single}" --forward
    DEPENDS "${PROJECT_SOURCE_DIR}/tools/amalgamate.py" ${sources} ${headers}
    VERBATIM)
file(CONFIGURE OUTPUT "${single}/tocsin.cpp"
    CONTENT "#define TOCSIN_IMPLEMENTATION\n#include \"tocsin.hpp\"\n")
add_custom_target(tocsin_single_header DEPENDS "${single}/tocsin.hpp")

set_target_properties(tocsin PROPERTIES
    SOURCES "${single}/tocsin.cpp"
    INCLUDE_DIRECTORIES "${single}"
    INTERFACE_INCLUDE_DIRECTORIES "${single}")
add_dependencies(tocsin tocsin_single_header)
