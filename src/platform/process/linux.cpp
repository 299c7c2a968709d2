// SPDX-License-Identifier: Apache-2.0
// Linux: a pidfd. It refers to the process itself, so it can't come to mean another process.
#include "platform/process/posix_ending.hpp"
#include "platform/process/process.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <optional>

#include <sys/syscall.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

#if defined(SYS_pidfd_open)
constexpr long pidfd_open = SYS_pidfd_open;
#else
constexpr long pidfd_open = 434;  // older headers lack it; Alpha, Itanium, MIPS and x32 have another
#endif
constexpr auto by_pidfd = static_cast<idtype_t>(3);  // P_PIDFD

}  // namespace

int open_process(process_number id, int& descriptor) noexcept {
    const errno_guard guard;
    descriptor = static_cast<int>(::syscall(pidfd_open, id, 0));  // the kernel makes it close-on-exec
    return descriptor < 0 ? errno : 0;
}

std::optional<process_ending> how_process_ended(int descriptor, process_number) noexcept {
    return peek_at_child(by_pidfd, static_cast<id_t>(descriptor));
}

}  // namespace tocsin::platform
