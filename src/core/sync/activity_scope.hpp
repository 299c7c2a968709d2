// SPDX-License-Identifier: Apache-2.0
// Records which activities a thread is inside: jobs, flushes, calls of executors. Activities may be nested. Each has an
// activity_scope on the thread's stack. These scopes form a chain, the innermost first.
//
// State, per thread: a pointer to the innermost scope, in a slot (platform/shared_table/thread_slots.hpp). Only the
// thread itself touches the pointer and the chain. All copies of the library in a process use the same chain.
#pragma once

#include "platform/shared_table/thread_slots.hpp"

#include <cstdint>

namespace tocsin::core {

enum class activity : std::uint8_t {
    job,    // of a handler_thread
    flush,  // of a group_commit
    post,   // a resumable is given to a user's executor
};

class activity_scope {
public:
    activity_scope(activity what, const void* whose) noexcept
        : what_(what), whose_(whose), outer_(innermost()) {
        platform::set_slot_of_this_thread(platform::thread_slot::activities, this);
    }
    ~activity_scope() { platform::set_slot_of_this_thread(platform::thread_slot::activities, outer_); }
    activity_scope(const activity_scope&) = delete;
    activity_scope& operator=(const activity_scope&) = delete;

    // Whether this thread is inside the activity `what` of `whose`.
    static bool is_inside(activity what, const void* whose) noexcept { return find(what, whose) != nullptr; }

    // If this thread is inside the activity, records that what it belongs to may be gone when the activity ends, and
    // returns true. From then on, the thread is not inside this activity: another object may have the same address.
    static bool leave(activity what, const void* whose) noexcept {
        activity_scope* const found = find(what, whose);
        if (found == nullptr) return false;
        found->left_ = true;
        return true;
    }
    bool was_left() const noexcept { return left_; }

private:
    friend struct shared_layout;

    static activity_scope* innermost() noexcept {
        return static_cast<activity_scope*>(platform::slot_of_this_thread(platform::thread_slot::activities));
    }
    static activity_scope* find(activity what, const void* whose) noexcept {
        activity_scope* each = innermost();
        while (each != nullptr && (each->what_ != what || each->whose_ != whose || each->left_))
            each = each->outer_;
        return each;
    }

    const activity what_;
    bool left_ = false;
    const void* const whose_;
    activity_scope* const outer_;
};

}  // namespace tocsin::core
