# SPDX-License-Identifier: Apache-2.0
# ctest reads this when it knows all cases. `lists` names lists of cases. `file` has a line for each kind of case that
# cannot work here: a regular expression for names, spaces, the reason.
file(STRINGS "${file}" lines REGEX "^[^#]")
foreach(line IN LISTS lines)
    string(REGEX MATCH "^[^ ]+" left_out "${line}")
    foreach(list IN LISTS lists)
        foreach(test IN LISTS ${list})
            if(test MATCHES "${left_out}")
                set_tests_properties("${test}" PROPERTIES DISABLED TRUE)
            endif()
        endforeach()
    endforeach()
endforeach()
