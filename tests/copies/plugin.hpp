// SPDX-License-Identifier: Apache-2.0
// What a plug-in of this test gives to its host, which does not know tocsin.
#pragma once

#include <cstdint>

#if defined(TOCSIN_BUILDING_PLUGIN)

#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>

struct shared_objects {
    tocsin::auto_reset_event event;
    std::atomic<std::uint16_t> word{0};
    tocsin::word_lock<> lock;
};

#endif

struct plugin_functions {
    void* (*make)();  // the objects for all the other calls; one set per plug-in
    bool (*wait_for_event)(void* objects);
    void (*set_event)(void* objects);
    bool (*wait_for_word)(void* objects);
    unsigned (*wake_word)(void* objects);
    bool (*lock)(void* objects);
    void (*unlock)(void* objects);
    unsigned (*parked)(void* objects);
#if defined(_WIN32)
    int (*wait_for_socket)(std::uintptr_t socket, unsigned milliseconds);  // 0: there is something to read
#endif
};
