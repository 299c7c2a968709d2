# cmake -DCOMPILER=... -DINCLUDE=... -DCASE=... -P check_case.cmake
file(STRINGS "${CASE}" first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^// expect: (.+)$")
    message(FATAL_ERROR "${CASE}: the first line must be `// expect: <regex>`")
endif()
set(expected "${CMAKE_MATCH_1}")

set(ENV{LC_ALL} C)
set(compile "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror "-I${INCLUDE}")

execute_process(COMMAND ${compile} "${CASE}" RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result EQUAL 0)
    message(NOTICE "${output}")
    message(FATAL_ERROR "does not compile even without MISUSE")
endif()

execute_process(COMMAND ${compile} -DMISUSE "${CASE}" RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0)
    message(FATAL_ERROR "the misuse compiles")
endif()
if(NOT output MATCHES "${expected}")
    message(NOTICE "${output}")
    message(FATAL_ERROR "refused, but the message does not match `${expected}`")
endif()
