# SPDX-License-Identifier: Apache-2.0
# What the shared library exports on ELF systems: the names of tocsin, under a version that is part of each name. So a
# program that holds two minor versions gets each call from the library that it was linked with, and instantiations of
# the C++ library's templates stay private.
if(BUILD_SHARED_LIBS AND UNIX AND NOT APPLE AND NOT EMSCRIPTEN)
    set(tocsin_exports "${PROJECT_BINARY_DIR}/tocsin.map")
    file(CONFIGURE OUTPUT "${tocsin_exports}" @ONLY CONTENT [[
TOCSIN_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {
    global:
        tocsin_*;
        _ZN6tocsin*; _ZNK6tocsin*;
        _ZTIN6tocsin*; _ZTSN6tocsin*; _ZTVN6tocsin*;
    local:
        *;
};
]])
    target_link_options(tocsin PRIVATE "LINKER:--version-script=${tocsin_exports}")
    set_property(TARGET tocsin APPEND PROPERTY LINK_DEPENDS "${tocsin_exports}")
endif()
