include(GoogleTest)

# Off, because with it a test that forgets an include builds all the same.
option(TOCSIN_PRECOMPILE_TESTS "Compile once what most tests include" OFF)

# tocsin_add_test(NAME SOURCE... LABEL label [INTERNAL] [TIMEOUT seconds])
#
# One executable; each of its GoogleTest cases becomes a case of ctest, named NAME.Suite.Case. Sees
# <tocsin/...> and tests/support; with INTERNAL also src/.
function(tocsin_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL" "LABEL;TIMEOUT" "")
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE tocsin::tocsin GTest::gtest GTest::gtest_main)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
    if(arg_INTERNAL)
        target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
        target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:tocsin,TOCSIN_CHOSEN>)
    endif()

    if(TARGET tocsin_test_headers)
        target_precompile_headers(${name} REUSE_FROM tocsin_test_headers)
    endif()
    if(CMAKE_CROSSCOMPILING_EMULATOR)
        target_compile_definitions(${name} PRIVATE TOCSIN_TEST_FEW_ROUNDS=1)
    endif()

    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
    if(arg_LABEL STREQUAL "stress")
        list(APPEND properties PROCESSORS 2)  # it brings more threads than cores of its own
    endif()
    # The executable is asked for its cases when ctest starts: a test that can't start then fails as a
    # test and doesn't break the build.
    gtest_discover_tests(${name}
        TEST_PREFIX "${name}."
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        PROPERTIES ${properties})
endfunction()
