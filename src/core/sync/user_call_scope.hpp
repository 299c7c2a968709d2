// SPDX-License-Identifier: Apache-2.0
// A thread runs functions of the user: jobs, flushes, executors. One may run inside another. For each, the thread keeps
// a user_call_scope on its stack. These scopes form a chain, the innermost first.
//
// State, per thread: a pointer to the innermost scope, in a slot (platform/shared_table/thread_slots.hpp). Only the
// thread itself touches the pointer and the chain. All copies of the library in a process use the same chain.
#pragma once

#include "platform/shared_table/thread_slots.hpp"

#include <cstdint>

namespace tocsin::core {

enum class user_call : std::uint8_t {
    job,    // of a handler_thread
    flush,  // of a group_commit
    post,   // a resumable is given to a user's executor
};

class user_call_scope {
public:
    user_call_scope(user_call what, const void* whose) noexcept
        : what_(what), whose_(whose), outer_(innermost()) {
        platform::set_slot_of_this_thread(platform::thread_slot::user_calls, this);
    }
    ~user_call_scope() { platform::set_slot_of_this_thread(platform::thread_slot::user_calls, outer_); }
    user_call_scope(const user_call_scope&) = delete;
    user_call_scope& operator=(const user_call_scope&) = delete;

    // Whether this thread is inside the call `what` of `whose`.
    static bool is_inside(user_call what, const void* whose) noexcept { return find(what, whose) != nullptr; }

    // If this thread is inside the call, records that what it belongs to may be gone when the call ends, and returns
    // true. From then on, the thread is not inside this call: another object may have the same address.
    static bool leave(user_call what, const void* whose) noexcept {
        user_call_scope* const found = find(what, whose);
        if (found == nullptr) return false;
        found->left_ = true;
        return true;
    }
    bool was_left() const noexcept { return left_; }

private:
    friend struct shared_layout;

    static user_call_scope* innermost() noexcept {
        return static_cast<user_call_scope*>(
            platform::slot_of_this_thread(platform::thread_slot::user_calls));
    }
    static user_call_scope* find(user_call what, const void* whose) noexcept {
        user_call_scope* each = innermost();
        while (each != nullptr && (each->what_ != what || each->whose_ != whose || each->left_))
            each = each->outer_;
        return each;
    }

    const user_call what_;
    bool left_ = false;
    const void* const whose_;
    user_call_scope* const outer_;
};

}  // namespace tocsin::core
