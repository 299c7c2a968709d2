// SPDX-License-Identifier: Apache-2.0
// Keeps calls of the C library from being pthread cancellation points. Code that is noexcept needs that: a cancellation
// that unwinds such code ends the program.
//
// Rejected: direct system calls, like those of poller/linux.cpp. They exist only on Linux, some differ from processor
// to processor, and the sanitizers don't see them.
#pragma once

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace tocsin::platform {

// While an object exists, its thread is not cancelled: a request to cancel the thread stays pending. The object makes
// no system call, and leaves errno as it is.
//
// Signal handlers make such objects, too. POSIX.1-2017 does not name pthread_setcancelstate() among what a signal
// handler may call. But in glibc, musl and FreeBSD, this function only changes a word of its own thread.
//
// The object does nothing on macOS, where the function makes a system call, and where a cancellation unwinds no C++
// code. Android has no cancellation.
class cancellation_disabled {
public:
    cancellation_disabled() noexcept : before_(exchange(disabled)) {}
    ~cancellation_disabled() { exchange(before_); }
    cancellation_disabled(const cancellation_disabled&) = delete;
    cancellation_disabled& operator=(const cancellation_disabled&) = delete;

private:
#if defined(PTHREAD_CANCEL_DISABLE) && !defined(__APPLE__) && !defined(__EMSCRIPTEN__)
    static constexpr int disabled = PTHREAD_CANCEL_DISABLE;
    static int exchange(int state) noexcept {
        int before = state;
        ::pthread_setcancelstate(state, &before);
        return before;
    }
#else
    static constexpr int disabled = 0;
    static int exchange(int state) noexcept { return state; }
#endif

    const int before_;
};

}  // namespace tocsin::platform
