# SPDX-License-Identifier: Apache-2.0
# GoogleTest as GTest::gtest and GTest::gtest_main: the installed one, or one built from its source (Debian: googletest)
# where the installed one is for another processor, system or standard library.
set(TOCSIN_GTEST_SOURCE "" CACHE PATH "The folder of GoogleTest's source; empty: use the installed one")

function(tocsin_build_googletest)
    set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -w")  # our warnings are not for other people's sources
    set(BUILD_GMOCK OFF)
    set(INSTALL_GTEST OFF)
    add_subdirectory("${TOCSIN_GTEST_SOURCE}/googletest" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
endfunction()

if(TARGET GTest::gtest)  # another folder of tests has included this file
elseif(TOCSIN_GTEST_SOURCE)
    tocsin_build_googletest()
else()
    find_package(GTest REQUIRED)
endif()
