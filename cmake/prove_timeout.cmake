# SPDX-License-Identifier: Apache-2.0
# ctest reads this when it knows all cases. `lists` names lists of cases. `./dev prove` (TOCSIN_PROVE in the
# environment) searches for hours. ctest's --timeout would not do: it is for cases without a limit, and these have one.
if(DEFINED ENV{TOCSIN_PROVE})
    foreach(list IN LISTS lists)
        if(${list})
            set_tests_properties(${${list}} PROPERTIES TIMEOUT 43200)
        endif()
    endforeach()
endif()
