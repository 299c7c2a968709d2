# SPDX-License-Identifier: Apache-2.0
# TOCSIN_WINE: how Wine is called. Each process of Wine needs the page at 0x7ffe0000. A kernel that puts the heap at
# random within the first GB after the program takes that page once in some 8,000 starts. So addresses are not random,
# where the system permits that.
execute_process(COMMAND setarch -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
if(refused EQUAL 0)
    set(TOCSIN_WINE setarch -R wine)
else()
    set(TOCSIN_WINE wine)
endif()
