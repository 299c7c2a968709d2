# SPDX-License-Identifier: Apache-2.0
# cmake -DWORK=folder [-DSHARED=ON] [-DFEATURES=checked] -P stand_ins.cmake
#
# Runs the port's portfile with stand-ins for the functions of vcpkg, which is not in a package registry. They do what
# vcpkg's manual says: a debug and a release build, each installed, and the checks after a build. What this cannot show
# is that a real vcpkg accepts the port.
cmake_minimum_required(VERSION 3.21)
set(PORT tocsin)
set(port_folder "${CMAKE_CURRENT_LIST_DIR}/ports/${PORT}")
set(CURRENT_PACKAGES_DIR "${WORK}/package")
file(REMOVE_RECURSE "${WORK}")

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
    endif()
endfunction()

function(vcpkg_check_features)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
    set(options "")
    while(arg_FEATURES)
        list(POP_FRONT arg_FEATURES feature option)
        if(feature IN_LIST FEATURES)
            list(APPEND options "-D${option}=ON")
        else()
            list(APPEND options "-D${option}=OFF")
        endif()
    endwhile()
    set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    foreach(kind IN ITEMS Debug Release)
        set(prefix "${CURRENT_PACKAGES_DIR}")
        if(kind STREQUAL "Debug")
            string(APPEND prefix "/debug")
        endif()
        run(${CMAKE_COMMAND} -S "${arg_SOURCE_PATH}" -B "${WORK}/${kind}" -G Ninja ${arg_OPTIONS}
            -DCMAKE_BUILD_TYPE=${kind} -DBUILD_SHARED_LIBS=${SHARED} "-DCMAKE_INSTALL_PREFIX=${prefix}"
            -DCMAKE_INSTALL_LIBDIR=lib)
    endforeach()
endfunction()

function(vcpkg_cmake_install)
    foreach(kind IN ITEMS Debug Release)
        run(${CMAKE_COMMAND} --build "${WORK}/${kind}" --target install)
    endforeach()
endfunction()

# The debug targets join the release targets in share/PORT, and paths lose the folder that is gone.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
    set(share "${CURRENT_PACKAGES_DIR}/share/${PORT}")
    file(COPY "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/" DESTINATION "${share}")
    file(GLOB debug_targets "${CURRENT_PACKAGES_DIR}/debug/${arg_CONFIG_PATH}/*-debug.cmake")
    foreach(file IN LISTS debug_targets)
        cmake_path(GET file FILENAME name)
        file(READ "${file}" text)
        string(REPLACE "{_IMPORT_PREFIX}/" "{_IMPORT_PREFIX}/debug/" text "${text}")
        file(WRITE "${share}/${name}" "${text}")
    endforeach()
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cmake" "${CURRENT_PACKAGES_DIR}/debug/lib/cmake")
    file(GLOB targets "${share}/*-targets.cmake")
    foreach(file IN LISTS targets)
        file(READ "${file}" text)
        string(REGEX REPLACE
            "get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)(\n[^\n]*PATH\\))+"
            "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)"
            text "${text}")
        file(WRITE "${file}" "${text}")
    endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_copy_pdbs)
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    configure_file("${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" COPYONLY)
endfunction()

# CMAKE_CURRENT_LIST_DIR is the port's folder in the file that is included.
include("${port_folder}/portfile.cmake")

# What vcpkg refuses after a build.
foreach(gone IN ITEMS debug/include debug/share lib/cmake debug/lib/cmake)
    if(EXISTS "${CURRENT_PACKAGES_DIR}/${gone}")
        message(FATAL_ERROR "the package has ${gone}")
    endif()
endforeach()
foreach(wanted IN ITEMS include/tocsin/tocsin.hpp share/tocsin/copyright share/tocsin/usage
        share/tocsin/tocsin-config.cmake lib/pkgconfig/tocsin.pc debug/lib/pkgconfig/tocsin.pc)
    if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${wanted}")
        message(FATAL_ERROR "the package lacks ${wanted}")
    endif()
endforeach()

# A stranger uses each of the two libraries.
foreach(kind IN ITEMS Debug Release)
    run(${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}/../../tests/consumer/find_package" -B "${WORK}/stranger-${kind}" -G Ninja
        -DCMAKE_BUILD_TYPE=${kind} "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR}")
    run(${CMAKE_COMMAND} --build "${WORK}/stranger-${kind}")
    run("${WORK}/stranger-${kind}/stranger")
endforeach()
