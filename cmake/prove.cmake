# SPDX-License-Identifier: Apache-2.0
# ctest reads this when it knows all cases of the models. `lists` names lists of cases. `file` has a line for each case
# that takes so long that `./dev test` leaves it out. `./dev prove` (TOCSIN_PROVE in the environment) searches for
# hours. ctest's --timeout would not do: it is for cases without a limit, and these have one.
file(STRINGS "${file}" long_cases REGEX "^[^#]")
foreach(list IN LISTS lists)
    foreach(test IN LISTS ${list})
        list(FIND long_cases "${test}" index)
        if(NOT index EQUAL -1)
            set_tests_properties("${test}" PROPERTIES LABELS "model;long")
        endif()
        if(DEFINED ENV{TOCSIN_PROVE})
            set_tests_properties("${test}" PROPERTIES TIMEOUT 43200)
        endif()
    endforeach()
endforeach()
