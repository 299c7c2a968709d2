// SPDX-License-Identifier: Apache-2.0
// Asks how a child ended, and leaves it to be reaped.
#pragma once

#include "platform/process/process.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <optional>

#include <signal.h>
#include <sys/wait.h>

namespace tocsin::platform {

#if defined(WNOWAIT)
inline std::optional<process_ending> peek_at_child(idtype_t by, id_t which) noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    siginfo_t info{};  // stays zero if the child has not ended
    if (::waitid(by, which, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return std::nullopt;
    return process_ending{static_cast<unsigned>(info.si_status), info.si_code != CLD_EXITED};
}
#endif

}  // namespace tocsin::platform
