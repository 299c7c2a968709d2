// SPDX-License-Identifier: Apache-2.0
// System calls of Linux without which the library can do. An older kernel lacks such a call (ENOSYS), or a filter
// (seccomp) forbids it. Whoever wrote the filter chose its error: usually EPERM, ENOSYS or EACCES. So one rule holds
// for all such calls: if the call fails, the other call is made instead, and that one's result counts. If the call
// failed with one of those three errors, and the other call does not fail in the same way, the first call was refused,
// and is not made again. After any other error (ENOMEM, for example) the next call tries it again.
#pragma once

#include <atomic>
#include <cerrno>

namespace tocsin::platform {

class optional_call {
public:
    // `wanted` and `other` make the system calls, and return what syscall() returns. The errors of a call that worked
    // and merely ended (EINTR, EAGAIN, ETIMEDOUT) are results of `wanted`.
    template <class Wanted, class Other>
    long operator()(Wanted wanted, Other other) noexcept {
        if (refused_.load(std::memory_order_relaxed)) return other();  // no order: a hint
        const long result = wanted();
        if (result >= 0 || errno == EINTR || errno == EAGAIN || errno == ETIMEDOUT) return result;
        const int error = errno;
        const long instead = other();
        const bool is_refusal = error == ENOSYS || error == EPERM || error == EACCES;
        if (is_refusal && (instead >= 0 || errno != error))
            refused_.store(true, std::memory_order_relaxed);  // no order: a hint
        return instead;
    }

private:
    std::atomic<bool> refused_{false};
};

}  // namespace tocsin::platform
