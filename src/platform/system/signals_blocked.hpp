// SPDX-License-Identifier: Apache-2.0
// Blocks all signals in the thread while an object exists.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace tocsin::platform {

class signals_blocked {
public:
    signals_blocked() noexcept : before_(block_all()) {}
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

    // Returns the mask that the thread had before.
    static sigset_t block_all() noexcept {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);  // without ::, because it is a macro on some systems
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        return before;
    }

private:
    const sigset_t before_;
};

}  // namespace tocsin::platform
