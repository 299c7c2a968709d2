// SPDX-License-Identifier: Apache-2.0
// Linux: a pidfd. It refers to the process itself, so it can't come to mean another process. The number of a thread
// that is not the first of its process names no process. Of such a number, pidfd_open(2) says EINVAL or, in newer
// kernels (seen in 6.18), ENOENT.
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
    if (descriptor >= 0) return 0;
    return errno == EINVAL || errno == ENOENT ? ESRCH : errno;
}

std::optional<process_ending> how_process_ended(int descriptor, process_number) noexcept {
    return peek_at_child(by_pidfd, static_cast<id_t>(descriptor));
}

}  // namespace tocsin::platform
