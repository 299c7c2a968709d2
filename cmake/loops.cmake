# SPDX-License-Identifier: Apache-2.0
# The loops of other libraries that are installed here: libuv, glib, asio, boost_asio. Where one is, tocsin_has_LOOP is
# true.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(libuv QUIET IMPORTED_TARGET libuv)
    pkg_check_modules(glib QUIET IMPORTED_TARGET glib-2.0)
endif()
# <tocsin/asio.hpp> needs this header, which older versions of Asio lack.
find_path(TOCSIN_ASIO_HEADERS asio/query.hpp)
find_path(TOCSIN_BOOST_ASIO_HEADERS boost/asio/query.hpp)
set(tocsin_has_libuv ${libuv_FOUND})
set(tocsin_has_glib ${glib_FOUND})
set(tocsin_has_asio ${TOCSIN_ASIO_HEADERS})
set(tocsin_has_boost_asio ${TOCSIN_BOOST_ASIO_HEADERS})

function(tocsin_use_loop target loop)
    # GCC refuses headers that were precompiled without the loop's options (GLib 2.90 wants -pthread).
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    if(loop STREQUAL "asio")
        target_include_directories(${target} SYSTEM PRIVATE "${TOCSIN_ASIO_HEADERS}")
        target_compile_definitions(${target} PRIVATE ASIO_STANDALONE)
    elseif(loop STREQUAL "boost_asio")
        target_include_directories(${target} SYSTEM PRIVATE "${TOCSIN_BOOST_ASIO_HEADERS}")
    else()
        target_link_libraries(${target} PRIVATE PkgConfig::${loop})
    endif()
endfunction()
