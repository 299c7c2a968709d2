// What each plug-in gives to the host, which does not know tocsin. An event is a byte of the host, zero at first: an
// auto-reset event, unless a function's name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

using byte_of_event = unsigned char;

struct plugin_functions {
    bool (*wait)(byte_of_event* event);  // false: nothing within twenty seconds
    void (*set)(byte_of_event* event);
    void (*set_gate)(byte_of_event* gate);
    bool (*wait_polling)(byte_of_event* event,
                         int descriptor);  // also for that descriptor to become readable
    bool (*wait_for_all)(byte_of_event* const* events, std::size_t count);
    // Returns the number of the only thread that is parked on the event; 0 if none is.
    std::uint64_t (*parked)(byte_of_event* event);
    // Start a coroutine that waits for an auto-reset event, or at a gate (a manual-reset event), then calls `then`.
    void (*start)(byte_of_event* event, void (*then)(void*), void* with);
    void (*start_at_gate)(byte_of_event* gate, void (*then)(void*), void* with);
    // The same, and returns the frame, for `destroy`. The frame stays when the coroutine is done.
    void* (*start_kept)(byte_of_event* gate, void (*then)(void*), void* with);
    void (*destroy)(void* frame);
    // Starts a coroutine that a deadline resumes in a thread of this copy, after a millisecond.
    void (*start_deadline)(void (*then)(void*), void* with);
};
