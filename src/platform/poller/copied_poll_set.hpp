// SPDX-License-Identifier: Apache-2.0
// A poll set for which the library keeps the list of members. The waiting thread polls a copy of that list. Used by
// posix.cpp and windows.cpp.
//
// State: a list of members, under a mutex. The waiting thread has its own copy of the list, which it polls without the
// mutex.
//
// Invariants
//   copied_poll_set-1  Every member has a serial number, and gets a new one with each change. What a poll finds in the
//       copy counts only for members whose serial numbers are still in the list. So a wait does not report a member
//       that was removed before the wait compared the numbers.
//   copied_poll_set-2  No thread keeps sleeping on a copy older than the list: a thread that changes the list during a
//       wait rings the set's bell.
//
// No lost wake-up: copied_poll_set-2 holds because both sides act under the mutex. A thread that changes the list
// checks, while it holds the mutex, whether a thread waits. A thread that is about to wait makes its copy and notes
// that it waits, both while it holds the mutex. So either the copy contains the change, or the thread that changes the
// list sees that a thread waits, and rings.
//
// Checked by: tests/internal/poll_set_test.cpp (posix.cpp), tests/internal/windows_poller_test.cpp (windows.cpp).
#pragma once

#include "platform/poller/backend.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/system/system.hpp"

#include <cstdint>
#include <mutex>

namespace tocsin::platform {

// `Set` is the class that is derived from this one. It has wait() and these static functions:
//   why_not_member(descriptor, asked)  0 if the descriptor may be a member, else the error
//   why_no_member(descriptor)          the error for a descriptor that is no member
//   to_asked(readiness)                the `Asked` value that tells a poll what to look for
template <class Set, class Doorbells, class Mutex, class Asked>
class copied_poll_set : public poll_set_with_bell<Doorbells> {
public:
    int open() noexcept { return this->take_bell(); }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept final {
        const errno_guard guard;
        if (const int error = Set::why_not_member(descriptor, asked); error != 0) return error;
        const std::lock_guard lock(mutex_);
        const int error = members_.insert({descriptor, Set::to_asked(asked), tag, changes_});
        if (error == 0) changed();
        return error;
    }

    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept final {
        const errno_guard guard;
        if (const int error = Set::why_not_member(descriptor, asked); error != 0) return error;
        const std::lock_guard lock(mutex_);
        member* const found = members_.find(descriptor);
        if (found == nullptr) return Set::why_no_member(descriptor);
        *found = {descriptor, Set::to_asked(asked), tag, changes_};
        changed();
        static_cast<Set*>(this)->await_poll_under_way();
        return 0;
    }

    int remove(int descriptor) noexcept final {
        const errno_guard guard;
        const std::lock_guard lock(mutex_);
        const member* const found = members_.find(descriptor);
        if (found == nullptr) return Set::why_no_member(descriptor);
        members_.erase(*found);
        changed();
        static_cast<Set*>(this)->await_poll_under_way();
        return 0;
    }

    // Called under the mutex after a member was changed or removed. This one does nothing. If a poll must not outlive
    // its members, `Set` has a function of the same name, which waits until the poll under way has ended.
    void await_poll_under_way() noexcept {}

protected:
    struct member {
        int descriptor;
        Asked asked;
        std::uint64_t tag;
        std::uint64_t serial;
    };

    // Under the mutex:
    Mutex mutex_;
    member_table<member> members_;
    std::uint64_t changes_ = 0;
    bool waiting_ = false;

private:
    void changed() noexcept {
        ++changes_;
        if (waiting_) this->ring();
    }
};

}  // namespace tocsin::platform
