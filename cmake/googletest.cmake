# SPDX-License-Identifier: Apache-2.0
# GoogleTest as GTest::gtest and GTest::gtest_main: the installed one, or one built from its source (Debian: googletest)
# where the installed one is for another processor, system or standard library.
set(TOCSIN_GTEST_SOURCE "" CACHE PATH "The folder of GoogleTest's source; empty: use the installed one")

function(tocsin_build_googletest)
    set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -w")  # our warnings are not for other people's sources
    set(BUILD_GMOCK OFF)
    set(INSTALL_GTEST OFF)
    add_subdirectory("${TOCSIN_GTEST_SOURCE}/googletest" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
    # The linker of MinGW-w64 2.40 looks for an object's section by walking through all of them. At -O0 GoogleTest's
    # object has 9,424 sections, and at -O1 it has 908: a program links in 0.7 s instead of 2.6 s.
    if(NOT MSVC)
        target_compile_options(gtest PRIVATE -O1)
    endif()
endfunction()

if(TARGET GTest::gtest)  # another folder of tests has included this file
elseif(TOCSIN_GTEST_SOURCE)
    tocsin_build_googletest()
else()
    find_package(GTest REQUIRED)
endif()
