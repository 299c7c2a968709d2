# SPDX-License-Identifier: Apache-2.0
# Compiles SOURCE to assembler with COMPILER, with and without BUILTIN, and compares.
set(texts)
foreach(definition IN ITEMS "" "-DBUILTIN=1")
    execute_process(
        COMMAND "${COMPILER}" -std=c++20 -O2 -S -o - ${definition} ${INCLUDES} "${SOURCE}"
        OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(LENGTH "${text}" length)
    if(length LESS 1000)
        message(FATAL_ERROR "the compiler wrote no assembler: ${text}")
    endif()
    string(SHA256 hash "${text}")
    list(APPEND texts ${hash})
    set(text_of_${hash} "${text}")
endforeach()
list(GET texts 0 ours)
list(GET texts 1 builtin)
if(NOT ours STREQUAL builtin)
    message(FATAL_ERROR "the Interlocked functions:\n${text_of_${ours}}\nThe compiler's own:\n${text_of_${builtin}}")
endif()
