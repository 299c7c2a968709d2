// What each plug-in gives to the host, which does not know tocsin. An event is a byte of the host, zero at first. It is
// an auto-reset event, unless the function's name says gate (a manual-reset event).
#pragma once

#include <cstddef>
#include <cstdint>

using byte_of_event = unsigned char;

struct plugin_functions {
    bool (*wait)(byte_of_event* event);  // false: no set within twenty seconds
    void (*set)(byte_of_event* event);
    void (*set_gate)(byte_of_event* gate);
    bool (*wait_polling)(byte_of_event* event,
                         int descriptor);  // waits for the event or for the descriptor to be readable
    bool (*wait_for_all)(byte_of_event* const* events, std::size_t count);
    // Returns the number of the only thread that is parked on the event; 0 if none is.
    std::uint64_t (*parked)(byte_of_event* event);
    // Start a coroutine that waits for an auto-reset event, or at a gate, then calls `then(with)`.
    void (*start)(byte_of_event* event, void (*then)(void*), void* with);
    void (*start_at_gate)(byte_of_event* gate, void (*then)(void*), void* with);
    // Does the same at a gate, and returns the frame, for `destroy`. The frame stays when the coroutine is done.
    void* (*start_kept)(byte_of_event* gate, void (*then)(void*), void* with);
    void (*destroy)(void* frame);
    // Starts a coroutine that a deadline resumes after a millisecond, in a thread of this copy. It calls `then(with)`.
    void (*start_deadline)(void (*then)(void*), void* with);
};
