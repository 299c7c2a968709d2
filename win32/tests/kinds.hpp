// SPDX-License-Identifier: Apache-2.0
// One object of each kind that can be waited for, for typed tests: unset at first, set on demand by whatever sets that
// kind.
#pragma once

#include "system.hpp"

#include <tocsin/event.hpp>

namespace win32 {

struct auto_event {
    static constexpr bool is_taken = true;  // by a wait that succeeds
    handle object = automatic();
    void signal() { EXPECT_TRUE(works(SetEvent, object)); }
};

struct manual_event {
    static constexpr bool is_taken = false;
    handle object = manual();
    void signal() { EXPECT_TRUE(works(SetEvent, object)); }
};

struct counting_semaphore {
    static constexpr bool is_taken = true;
    handle object = semaphore(0, 3);
    void signal() { EXPECT_TRUE(works(ReleaseSemaphore, object, 1, nullptr)); }
};

// Another thread owns it until it is released.
struct owned_mutex {
    static constexpr bool is_taken = true;
    handle object = mutex();
    void signal() {
        told.set();
        if (owner.joinable()) owner.join();
    }

    tocsin::manual_reset_event owned, told;
    std::thread owner{[this] {
        EXPECT_EQ(wait(object), WAIT_OBJECT_0);
        owned.set();
        told.wait();
        EXPECT_TRUE(works(ReleaseMutex, object));
    }};
    owned_mutex() { owned.wait(); }
    ~owned_mutex() { signal(); }
};

template <bool Manual>
struct set_timer {
    static constexpr bool is_taken = !Manual;
    handle object = timer(Manual);
    void signal() {
        LARGE_INTEGER due{};
        due.QuadPart = -1;
        EXPECT_TRUE(works(SetWaitableTimer, object, &due, 0, nullptr, nullptr, FALSE));
        until_timers_are_set();
    }
};
using auto_timer = set_timer<false>;
using manual_timer = set_timer<true>;

struct ending_thread {
    static constexpr bool is_taken = false;
    tocsin::manual_reset_event told;
    handle object{CreateThread(nullptr, 0, run, this, 0, nullptr)};
    void signal() {
        told.set();
        EXPECT_EQ(wait(object), WAIT_OBJECT_0);
    }
    ~ending_thread() { signal(); }
    static DWORD WINAPI run(void* self) {
        static_cast<ending_thread*>(self)->told.wait();
        return 0;
    }
};

using all_kinds = testing::Types<auto_event, manual_event, counting_semaphore, owned_mutex, auto_timer,
                                 manual_timer, ending_thread>;

}  // namespace win32
