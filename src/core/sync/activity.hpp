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
    post,   // a resumable is given to a user's executor, which must not resume it inside that call
};

class activity_scope {
public:
    activity_scope(activity what, const void* whose) noexcept
        : what_(what), whose_(whose), outer_(innermost()) {
        platform::set_slot_of_this_thread(platform::thread_slot::activities, this);
    }
    ~activity_scope() {
        platform::set_slot_of_this_thread(platform::thread_slot::activities,
                                          const_cast<activity_scope*>(outer_));
    }
    activity_scope(const activity_scope&) = delete;
    activity_scope& operator=(const activity_scope&) = delete;

    // Whether this thread is inside the activity `what` of `whose`.
    static bool is_inside(activity what, const void* whose) noexcept {
        const activity_scope* each = innermost();
        while (each != nullptr && (each->what_ != what || each->whose_ != whose)) each = each->outer_;
        return each != nullptr;
    }

private:
    friend struct shared_layout;

    static const activity_scope* innermost() noexcept {
        return static_cast<const activity_scope*>(
            platform::slot_of_this_thread(platform::thread_slot::activities));
    }

    const activity what_;
    const void* const whose_;
    const activity_scope* const outer_;
};

}  // namespace tocsin::core
