# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: library, headers, debugging tools, CMake package, pkg-config file. A project that
# includes tocsin by add_subdirectory or FetchContent installs it along with itself, because its own exported targets
# may link tocsin's; TOCSIN_INSTALL=OFF prevents that.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# `cmake --install --component tocsin_runtime` installs what a program needs to run; tocsin_development, the rest.
install(TARGETS tocsin EXPORT tocsin
    RUNTIME COMPONENT tocsin_runtime
    LIBRARY COMPONENT tocsin_runtime NAMELINK_COMPONENT tocsin_development
    ARCHIVE COMPONENT tocsin_development
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tocsin" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT tocsin_development)

install(FILES "${PROJECT_SOURCE_DIR}/tools/gdb/tocsin_gdb.py" "${PROJECT_SOURCE_DIR}/tools/tocsin.natvis"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/tocsin"
    COMPONENT tocsin_development)
install(PROGRAMS
    "${PROJECT_SOURCE_DIR}/tools/trace/wakeup_latency.bt"
    "${PROJECT_SOURCE_DIR}/tools/trace/longest_waits.bt"
    "${PROJECT_SOURCE_DIR}/tools/trace/wakes.bt"
    "${PROJECT_SOURCE_DIR}/tools/trace/perf_wakes.sh"
    "${PROJECT_SOURCE_DIR}/tools/trace/trace_events.py"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/tocsin/trace"
    COMPONENT tocsin_development)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tocsin")
install(EXPORT tocsin
    NAMESPACE tocsin::
    FILE tocsin-targets.cmake
    DESTINATION "${package_dir}"
    COMPONENT tocsin_development)
configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/tocsin-config.cmake.in"
    "${PROJECT_BINARY_DIR}/tocsin-config.cmake"
    INSTALL_DESTINATION "${package_dir}"
    NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break its users, so only the same minor version satisfies a request.
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/tocsin-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/tocsin-config.cmake"
    "${PROJECT_BINARY_DIR}/tocsin-config-version.cmake"
    DESTINATION "${package_dir}"
    COMPONENT tocsin_development)

# pkg-config has no generator expressions, so the definitions that users must share are written out here. The prefix is
# relative to the file, so that an installed tree can be moved.
set(pc_definitions "")
foreach(define IN ITEMS CHECKED COUNTERS)
    if(TOCSIN_${define})
        string(APPEND pc_definitions " -DTOCSIN_${define}=1")
    endif()
endforeach()
if(BUILD_SHARED_LIBS)
    string(APPEND pc_definitions " -DTOCSIN_SHARED=1")
endif()
set(pc_libraries "")
if(TOCSIN_HAS_LIBATOMIC)
    set(pc_libraries " -latomic")
endif()
if(NOT BUILD_SHARED_LIBS)
    list(TRANSFORM CMAKE_DL_LIBS PREPEND " -l" OUTPUT_VARIABLE pc_libraries_of_static)
    list(JOIN pc_libraries_of_static "" pc_libraries_of_static)
    string(APPEND pc_libraries "${pc_libraries_of_static}")
endif()
# If a static library over tocsin is linked into a C program, the linker needs to be told of tocsin and of the C++
# library, too.
set(pc_libraries_for_c " -ltocsin -pthread${pc_libraries}")
foreach(library IN ITEMS stdc++ c++)
    if(library IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
        string(APPEND pc_libraries_for_c " -l${library}")
    endif()
endforeach()
# Directories may be absolute; otherwise they are relative to the prefix.
foreach(directory IN ITEMS LIBDIR INCLUDEDIR)
    set(pc_${directory} "${CMAKE_INSTALL_${directory}}")
    if(NOT IS_ABSOLUTE "${pc_${directory}}")
        string(PREPEND pc_${directory} "\${prefix}/")
    endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
    string(PREPEND pc_prefix "\${pcfiledir}/")
endif()
configure_file(
    "${PROJECT_SOURCE_DIR}/cmake/tocsin.pc.in" "${PROJECT_BINARY_DIR}/tocsin.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tocsin.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT tocsin_development)
