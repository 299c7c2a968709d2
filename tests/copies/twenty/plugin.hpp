// SPDX-License-Identifier: Apache-2.0
// What each plug-in gives to the host, which does not know tocsin. An event is a byte of the host, zero at first. It is
// an auto-reset event, unless the function's name says gate (a manual-reset event).
#pragma once

#include <cstddef>
#include <cstdint>

using byte_of_event = unsigned char;

struct shared_objects;  // plugin.cpp
enum class kind_of_object { lock, semaphore, condition, channel };

struct plugin_functions {
    bool (*wait)(byte_of_event* event);  // false: no set within twenty seconds
    void (*set)(byte_of_event* event);
    void (*set_gate)(byte_of_event* gate);
    bool (*wait_polling)(byte_of_event* event,
                         int descriptor);  // waits for the event or for the descriptor to be readable
    bool (*wait_for_all)(byte_of_event* const* events, std::size_t count);
    // Returns the number of the only thread that is parked on the object; 0 if none is. (Waits on channels are seen
    // only by the copy in which they were made.)
    std::uint64_t (*parked)(const void* object);
    // Start a coroutine that waits for an auto-reset event, or at a gate, then calls `then(with)`.
    void (*start)(byte_of_event* event, void (*then)(void*), void* with);
    void (*start_at_gate)(byte_of_event* gate, void (*then)(void*), void* with);
    // Does the same at a gate, and returns the frame, for `destroy`. The frame stays when the coroutine is done.
    void* (*start_kept)(byte_of_event* gate, void (*then)(void*), void* with);
    void (*destroy)(void* frame);
    // The same three for an operation, which ends itself after the call unless it is kept.
    void (*start_operation)(byte_of_event* event, void (*then)(void*), void* with);
    void* (*start_kept_operation)(byte_of_event* gate, void (*then)(void*), void* with);
    void (*destroy_operation)(void* operation);
    // Starts a coroutine that a deadline resumes after a millisecond, in a thread of this copy. It calls `then(with)`.
    void (*start_deadline)(void (*then)(void*), void* with);

    // The other objects, one of each kind. Any copy may make and destroy them, and all copies may use them.
    shared_objects* (*make)();
    void (*destroy_objects)(shared_objects* all);
    const void* (*address_of)(shared_objects* all, kind_of_object which);
    bool (*lock)(shared_objects* all);  // false: not within twenty seconds, as in all the following
    void (*unlock)(shared_objects* all);
    bool (*acquire)(shared_objects* all);  // two permits
    void (*release)(shared_objects* all);  // one permit
    bool (*wait_for_condition)(shared_objects* all);
    void (*notify)(shared_objects* all);
    bool (*send)(shared_objects* all, int number);
    bool (*receive)(shared_objects* all, int number);  // also false if it is another number
    // Sends at one of two rendezvous or receives at the other one, whatever comes first, in one wait.
    bool (*send_or_receive)(shared_objects* all, bool sends_at_first);
    // Sends at one of two rendezvous, in a wait that finds its counterpart only when it is about to sleep. Calls
    // `moves` while the item moves.
    bool (*meet)(shared_objects* all, bool at_first, void (*moves)());
    bool (*is_lock_waited_for)();  // any lock
};
