// SPDX-License-Identifier: Apache-2.0
// What timer_thread.cpp, poll_thread.cpp and watchdog.cpp share: background threads, and the state that they use.
#pragma once

#include "core/sync/fork.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/never_destroyed.hpp>

#include <new>
#include <system_error>

namespace tocsin::core {

// The duty of the child of a fork (core/sync/fork.hpp): constructs a never_destroyed object again. The resources of the
// parent's state are not freed.
template <auto& Object>
void renew() noexcept {
    new (&Object.it) decltype(Object.it);
}

// A thread that starts when it is first needed and lives as long as the process. The owner of this object guards it by
// a lock, except for prepare().
class background_thread {
public:
    // Call it before start(), and before the owner's lock is taken. It may wait for the dynamic linker's lock. A thread
    // that loads a plug-in holds the linker's lock while the plug-in's constructors run. These may want the owner's.
    static void prepare() noexcept { platform::keep_loaded(); }

    // If the system can't start a thread, throws std::system_error with the text `refusal`.
    void start(void (*body)() noexcept, const char* refusal) {
        if (started_) return;
        makers_signals_ = platform::signal_mask::current();
        if (const int error = platform::start_thread(body); error != 0) {
            detail::throw_or_die(std::system_error(error, platform::error_category(), refusal));
        }
        started_ = true;
    }

    // The signals that were blocked in the caller of start() when it started the thread. For use by the thread itself.
    const platform::signal_mask& makers_signals() const noexcept { return makers_signals_; }

private:
    platform::signal_mask makers_signals_;
    bool started_ = false;
};

}  // namespace tocsin::core
