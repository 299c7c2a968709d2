# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)
set(CMAKE_UNITY_BUILD OFF)  # many tests use the same names

# Off by default, because with it a test that lacks an include compiles all the same.
option(TOCSIN_PRECOMPILE_TESTS "Compile the headers that most tests include once" OFF)

set(TOCSIN_TESTS_LEFT_OUT "" CACHE STRING "A file of tests/ that lists tests which cannot work here; empty: none")

# tocsin_add_test(NAME SOURCE... LABEL label [INTERNAL] [WHOLE] [TIMEOUT seconds] [COST number])
#
# One executable; each of its GoogleTest cases becomes a case of ctest, named NAME.Suite.Case. With WHOLE the whole
# executable is one case. That is always so for Windows, because an executable takes long to start under Wine. The
# executable sees <tocsin/...> and tests/support; with INTERNAL it also sees src/.
function(tocsin_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL;WHOLE" "LABEL;TIMEOUT;COST" "")
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE tocsin::tocsin GTest::gtest GTest::gtest_main)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
    if(arg_INTERNAL)
        target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
        target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:tocsin,TOCSIN_CHOSEN>)
    endif()

    if(arg_LABEL MATCHES "^(unit|internal)$" AND TARGET tocsin_quick)
        add_dependencies(tocsin_quick ${name})
    endif()
    if(TARGET tocsin_test_headers)
        target_precompile_headers(${name} REUSE_FROM tocsin_test_headers)
    endif()
    if(CMAKE_CROSSCOMPILING_EMULATOR)
        target_compile_definitions(${name} PRIVATE TOCSIN_TEST_FEW_ROUNDS=1)
    endif()

    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    if(WIN32)
        set(arg_TIMEOUT 600)  # for all cases together
    endif()
    set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
    if(arg_COST)
        list(APPEND properties COST ${arg_COST})
    endif()
    if(arg_LABEL STREQUAL "stress")
        list(APPEND properties PROCESSORS 2)  # it keeps all processors busy
    endif()
    if(WIN32 OR arg_WHOLE)
        tocsin_add_whole_suite(${name} ${name} ${properties})
        return()
    endif()
    # ctest, and not the build, asks the executable for its cases. So a program that can't start fails as a test.
    gtest_discover_tests(${name}
        TEST_PREFIX "${name}."
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        PROPERTIES ${properties})
endfunction()

# tocsin_add_whole_suite(TEST EXECUTABLE [property value]...): a case of ctest that runs all cases of an executable.
function(tocsin_add_whole_suite test executable)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND}
        "-DCOMMAND=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:${executable}>"
        -P "${PROJECT_SOURCE_DIR}/cmake/run_suite.cmake")
    set_tests_properties(${test} PROPERTIES ${ARGN})
endfunction()

# Disables the tests that the file TOCSIN_TESTS_LEFT_OUT lists, once ctest has asked these executables for their cases.
function(tocsin_leave_tests_out)
    if(NOT TOCSIN_TESTS_LEFT_OUT)
        return()
    endif()
    list(TRANSFORM ARGN APPEND _TESTS OUTPUT_VARIABLE lists)
    list(GET ARGN 0 first)  # a folder may call this more than once
    set(script "${CMAKE_CURRENT_BINARY_DIR}/left_out_of_${first}.cmake")
    file(CONFIGURE OUTPUT "${script}" @ONLY CONTENT [[
set(lists "@lists@")
set(file "@PROJECT_SOURCE_DIR@/tests/@TOCSIN_TESTS_LEFT_OUT@")
include("@PROJECT_SOURCE_DIR@/cmake/leave_tests_out.cmake")
]])
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()
