# SPDX-License-Identifier: Apache-2.0
# An overlay port: it builds the tree that it is in. vcpkg install tocsin --overlay-ports=packaging/vcpkg/ports
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

# Without the feature, a debug build is not checked either: programs of both kinds use the same targets file, which says
# what their headers check.
vcpkg_check_features(OUT_FEATURE_OPTIONS options
    FEATURES
        checked TOCSIN_CHECKED
        counters TOCSIN_COUNTERS)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DTOCSIN_WIN32=ON ${options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH "lib/cmake/tocsin")
vcpkg_fixup_pkgconfig()
vcpkg_copy_pdbs()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
