# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DINCLUDE=... -DCASE=... -P check_case.cmake
file(STRINGS "${CASE}" first_lines LIMIT_COUNT 2)
list(GET first_lines 0 first_line)
list(GET first_lines 1 second_line)
if(NOT first_line MATCHES "^// (expect|expect only|expect of clang): (.+)$")
    message(FATAL_ERROR
        "${CASE}: the first line must be `// expect: <regex>`, `// expect only: ...` or `// expect of clang: ...`")
endif()
set(kind "${CMAKE_MATCH_1}")
set(expected "${CMAKE_MATCH_2}")
set(standard -std=c++20)
if(second_line MATCHES "^// misuse: (.+)$")
    set(standard "${CMAKE_MATCH_1}")
endif()

set(ENV{LC_ALL} C)
set(compile "${COMPILER}" -fsyntax-only -Wall -Wextra -Werror "-I${INCLUDE}")

execute_process(COMMAND ${compile} -std=c++20 "${CASE}" RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result EQUAL 0)
    message(NOTICE "${output}")
    message(FATAL_ERROR "does not compile even without MISUSE")
endif()

execute_process(COMMAND ${compile} ${standard} -DMISUSE "${CASE}" RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0)
    message(FATAL_ERROR "the misuse compiles")
endif()
if(NOT output MATCHES "${expected}")
    message(NOTICE "${output}")
    message(FATAL_ERROR "refused, but the message does not match `${expected}`")
endif()
string(REGEX MATCHALL ": error: " errors "${output}")  # not the fatal one that may end an error's series
list(LENGTH errors count)
if(kind STREQUAL "expect only" AND NOT count EQUAL 1)
    message(NOTICE "${output}")
    message(FATAL_ERROR "refused with ${count} errors instead of one")
endif()
