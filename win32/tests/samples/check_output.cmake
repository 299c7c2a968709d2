# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM (a list: perhaps an emulator first), and compares what it prints with the file EXPECTED.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE result)
string(REPLACE "\r\n" "\n" printed "${printed}")
file(READ "${EXPECTED}" expected)
if(NOT result EQUAL 0 OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "ended with ${result}, and printed\n${printed}\ninstead of\n${expected}")
endif()
