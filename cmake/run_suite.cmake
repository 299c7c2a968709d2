# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMMAND=... -P run_suite.cmake
#
# Runs all cases of a GoogleTest program. It must end with 0 and say what passed, because a program that crashes may end
# with 0 under Wine.
cmake_minimum_required(VERSION 3.21)
execute_process(COMMAND ${COMMAND} --gtest_brief=1 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message(NOTICE "${output}${errors}")
if(NOT result EQUAL 0)
    message(FATAL_ERROR "exit code ${result}")
elseif(NOT output MATCHES "\\[  PASSED  \\] [1-9]")
    message(FATAL_ERROR "the program ended with 0 and did not say what passed")
endif()
