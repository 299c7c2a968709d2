# SPDX-License-Identifier: Apache-2.0
# cd src && cmake -DSYSTEM=Linux [-DTOCSIN_FUTEX=...] -P ../cmake/list_sources.cmake
#
# Prints the library's sources for a system (a value of CMAKE_SYSTEM_NAME), one a line, and the definitions that choose
# a mechanism, as -DNAME=VALUE. The sources are those of src/CMakeLists.txt without the mechanisms that are not chosen.
# Tools that compile the library without CMake's build read this list, so only src/CMakeLists.txt has one.
cmake_minimum_required(VERSION 3.21)
set(CMAKE_SYSTEM_NAME "${SYSTEM}")
string(COMPARE EQUAL "${SYSTEM}" "Windows" WIN32)
string(COMPARE EQUAL "${SYSTEM}" "Darwin" APPLE)
string(COMPARE EQUAL "${SYSTEM}" "Emscripten" EMSCRIPTEN)
foreach(concept IN ITEMS FUTEX POLLER)
    if(NOT TOCSIN_${concept})
        set(TOCSIN_${concept} auto)
    endif()
endforeach()

# The part of src/CMakeLists.txt that needs no compiler. A script may not ask CMake to watch a folder.
file(READ CMakeLists.txt code)
string(FIND "${code}" "include(CheckCXXSourceCompiles)" end)
if(end EQUAL -1)
    message(FATAL_ERROR "src/CMakeLists.txt does not include CheckCXXSourceCompiles after its lists")
endif()
string(SUBSTRING "${code}" 0 ${end} code)
string(REPLACE " CONFIGURE_DEPENDS" "" code "${code}")
cmake_language(EVAL CODE "${code}")

foreach(definition IN LISTS chosen)
    string(REGEX MATCH "^TOCSIN_.*_CHOSEN=(.*)_(.*)$" matched "${definition}")
    set(concept ${CMAKE_MATCH_2})
    if(NOT CMAKE_MATCH_1 STREQUAL "windows")  # which chooses among all of them when the program starts
        set(others ${futexes} ${pollers})
        list(REMOVE_ITEM others ${CMAKE_MATCH_1})
        list(TRANSFORM others REPLACE "(.+)" "platform/${concept}/\\1.cpp")
        list(REMOVE_ITEM platform ${others})
    endif()
endforeach()

set(files ${platform} ${core} ${features})
list(TRANSFORM files REPLACE "^.*/src/(core/|[^/]*$)" "\\1")
list(SORT files)
list(TRANSFORM chosen PREPEND "-D")
list(JOIN files "\n" text)
list(JOIN chosen "\n" definitions)
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${text}\n${definitions}")
