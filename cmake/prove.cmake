# SPDX-License-Identifier: Apache-2.0
# ctest reads this when it knows all cases of the models. `lists` names lists of cases. `folder` has two lists of cases
# that take long: long.txt, which CI leaves out, and slow.txt, which `./dev test` leaves out, too.
# `./dev prove` (TOCSIN_PROVE in the environment) searches for hours. ctest's --timeout would not do: it is for cases
# without a limit, and these have one.
cmake_policy(SET CMP0057 NEW)  # IN_LIST
file(STRINGS "${folder}/long.txt" long_cases REGEX "^[^#]")
file(STRINGS "${folder}/slow.txt" slow_cases REGEX "^[^#]")
foreach(list IN LISTS lists)
    foreach(test IN LISTS ${list})
        if(test IN_LIST long_cases)
            set_tests_properties("${test}" PROPERTIES LABELS "model;long")
        elseif(test IN_LIST slow_cases)
            set_tests_properties("${test}" PROPERTIES LABELS "model;slow")
        endif()
        if(DEFINED ENV{TOCSIN_PROVE})
            set_tests_properties("${test}" PROPERTIES TIMEOUT 43200)
        endif()
    endforeach()
endforeach()
