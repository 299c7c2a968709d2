# What `cmake --install` installs: library, headers, CMake package, pkg-config file. A project that includes tocsin by
# add_subdirectory does not install it along with itself.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tocsin EXPORT tocsin)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tocsin" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tocsin")
install(EXPORT tocsin
    NAMESPACE tocsin::
    FILE tocsin-targets.cmake
    DESTINATION "${package_dir}")
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
    DESTINATION "${package_dir}")

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
file(RELATIVE_PATH pc_to_prefix
    "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(
    "${PROJECT_SOURCE_DIR}/cmake/tocsin.pc.in" "${PROJECT_BINARY_DIR}/tocsin.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tocsin.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
