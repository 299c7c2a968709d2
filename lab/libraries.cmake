# Contestants that the C++ workers don't have by themselves: Debian's libraries in a worker of their own, libc++
# in one built by clang. What isn't installed is left out with a word.
find_package(PkgConfig QUIET)

set(peer_headers "")
set(peer_contestants "")
set(peer_targets "")

# lab_peer(FOUND PACKAGE HEADER TARGETS CONTESTANT...): adds contestants to the worker of the libraries, if
# FOUND says that the Debian package (or what else is named) is there.
function(lab_peer found package header targets)
    if(NOT found)
        message(STATUS "Lab: ${header} is left out: needs ${package}")
        return()
    endif()
    set(peer_headers ${peer_headers} ${header} PARENT_SCOPE)
    set(peer_targets ${peer_targets} ${targets} PARENT_SCOPE)
    set(peer_contestants ${peer_contestants} ${ARGN} PARENT_SCOPE)
endfunction()

if(PkgConfig_FOUND)
    pkg_check_modules(abseil QUIET IMPORTED_TARGET absl_synchronization)
    pkg_check_modules(glib QUIET IMPORTED_TARGET glib-2.0)
    pkg_check_modules(uv QUIET IMPORTED_TARGET libuv)
    pkg_check_modules(qt QUIET IMPORTED_TARGET Qt6Core)
    pkg_check_modules(onetbb QUIET IMPORTED_TARGET tbb)
endif()
find_library(nsync_library nsync_cpp)
find_path(concurrentqueue_header concurrentqueue/lightweightsemaphore.h)
find_package(Boost 1.73 QUIET COMPONENTS atomic fiber)

lab_peer("${nsync_library}" libnsync-dev nsync "${nsync_library}" nsync_cond nsync_note_contestant nsync_wait_n)
lab_peer("${abseil_FOUND}" libabsl-dev abseil PkgConfig::abseil absl_cond absl_notification)
lab_peer("${onetbb_FOUND}" libtbb-dev tbb PkgConfig::onetbb onetbb)
lab_peer("${Boost_FOUND}" "libboost-fiber-dev and libboost-atomic-dev" boost "Boost::atomic;Boost::fiber"
    boost_atomic boost_fiber boost_interprocess)
lab_peer("${concurrentqueue_header}" libconcurrentqueue-dev concurrentqueue "" moodycamel_semaphore)
lab_peer("${glib_FOUND}" libglib2.0-dev glib PkgConfig::glib glib_cond glib_context)
lab_peer("${uv_FOUND}" libuv1-dev libuv PkgConfig::uv libuv_cond libuv_async)
lab_peer("${qt_FOUND}" qt6-base-dev qt PkgConfig::qt qt_cond qt_semaphore)

# Rust's crates become one static library. They are built in a copy, because cargo writes beside its input.
find_program(cargo cargo)
set(crates_FOUND OFF)
set(crates "${CMAKE_CURRENT_BINARY_DIR}/crates")
if(cargo)
    execute_process(COMMAND "${cargo}" --version OUTPUT_VARIABLE cargo_version)
    string(REGEX MATCH "[0-9.]+" cargo_version "${cargo_version}")
endif()
if(cargo AND cargo_version VERSION_GREATER_EQUAL 1.71)
    file(COPY worker/crates/ DESTINATION "${crates}")
    execute_process(COMMAND "${cargo}" fetch --quiet WORKING_DIRECTORY "${crates}" RESULT_VARIABLE fetched ERROR_QUIET)
    if(fetched EQUAL 0)
        set(crates_FOUND ON)
    endif()
endif()
set(crates_library "${crates}/target/release/liblab_crates.a")
lab_peer("${crates_FOUND}" "cargo 1.71 or newer and a network" rust "${crates_library}"
    rust_parking_lot rust_event_listener rust_rsevents rust_atomic_wait)
if(crates_FOUND)
    add_custom_command(OUTPUT "${crates_library}"
        COMMAND "${CMAKE_COMMAND}" -E copy_directory "${CMAKE_CURRENT_SOURCE_DIR}/worker/crates" "${crates}"
        COMMAND "${cargo}" build --release --quiet --offline
        DEPENDS worker/crates/Cargo.toml worker/crates/src/lib.rs
        WORKING_DIRECTORY "${crates}" COMMENT "Building Rust's crates" VERBATIM)
    add_custom_target(tocsin_lab_crates DEPENDS "${crates_library}")
endif()

if(peer_contestants)
    list(TRANSFORM peer_headers REPLACE "(.+)"
        "#include \"${CMAKE_CURRENT_SOURCE_DIR}/worker/contestants/\\1.hpp\"" OUTPUT_VARIABLE includes)
    list(JOIN includes "\n" includes)
    list(JOIN peer_contestants ", " types)
    file(CONFIGURE OUTPUT lineups/libraries.hpp @ONLY CONTENT
"// Made by libraries.cmake: what is installed here.
#pragma once

@includes@
#include \"@CMAKE_CURRENT_SOURCE_DIR@/worker/registry.hpp\"

namespace lab {

using lineup = contestants<@types@>;

}  // namespace lab
")
    tocsin_lab_worker(tocsin_lab_worker_libraries "${CMAKE_CURRENT_BINARY_DIR}/lineups/libraries.hpp"
        Threads::Threads ${peer_targets})
    target_compile_definitions(tocsin_lab_worker_libraries PRIVATE QT_NO_KEYWORDS)
    if(crates_FOUND)
        add_dependencies(tocsin_lab_worker_libraries tocsin_lab_crates)
    endif()
endif()

# Another compiler than the project's, because another standard library.
find_program(clang_for_libcxx clang++-19)
find_path(libcxx_headers __config PATHS /usr/lib/llvm-19/include/c++/v1 NO_DEFAULT_PATH)
find_library(libcxx_abi c++abi PATHS /usr/lib/llvm-19/lib)
if(NOT clang_for_libcxx OR NOT libcxx_headers OR NOT libcxx_abi)
    message(STATUS "Lab: libc++ is left out: needs clang-19, libc++-19-dev and libc++abi-19-dev")
    return()
endif()
set(libcxx_flags -std=c++20 -stdlib=libc++ -O2 -g -DNDEBUG -falign-functions=64 -falign-loops=32 -pthread)
list(JOIN libcxx_flags " " libcxx_flags_text)
set(objects "")
foreach(source IN LISTS worker_sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/worker" OUTPUT_VARIABLE name)
    string(REPLACE "/" "_" name "${name}")
    set(object "${CMAKE_CURRENT_BINARY_DIR}/libcxx/${name}.o")
    add_custom_command(OUTPUT "${object}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/libcxx"
        COMMAND "${clang_for_libcxx}" ${libcxx_flags} -MD -MF "${object}.d"
            "-DLAB_LINEUP=\"${CMAKE_CURRENT_SOURCE_DIR}/worker/lineups/libcxx.hpp\""
            "-DLAB_FLAGS=\"${libcxx_flags_text}\"" -c "${source}" -o "${object}"
        DEPENDS "${source}" DEPFILE "${object}.d"
        COMMENT "Building ${name} with libc++" VERBATIM)
    list(APPEND objects "${object}")
endforeach()
set(libcxx_worker "${CMAKE_CURRENT_BINARY_DIR}/tocsin_lab_worker_libcxx")
add_custom_command(OUTPUT "${libcxx_worker}"
    COMMAND "${clang_for_libcxx}" ${libcxx_flags} ${objects} -o "${libcxx_worker}"
    DEPENDS ${objects} COMMENT "Linking the worker of libc++" VERBATIM)
add_custom_target(tocsin_lab_libcxx ALL DEPENDS "${libcxx_worker}")
