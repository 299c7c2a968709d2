// SPDX-License-Identifier: Apache-2.0
// macOS, FreeBSD, OpenBSD: a kqueue with one filter, which reports the end of the process. A kqueue is readable while
// it has an event, and nobody ever takes this event.
//
// Some systems refuse the filter (ESRCH) for a child that has ended and is not reaped yet. For such a child the
// descriptor is a pipe whose other end is closed: it is readable for ever.
#include "platform/process/posix_ending.hpp"
#include "platform/process/process.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/event.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

int open_ended(int& descriptor) noexcept {
    int ends[2];
    if (::pipe(ends) != 0) return errno;
    close_descriptor(ends[1]);
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    descriptor = ends[0];
    return 0;
}

}  // namespace

int open_process(process_number id, int& descriptor) noexcept {
    const errno_guard guard;
    const int queue = ::kqueue();
    if (queue < 0) return errno;
    ::fcntl(queue, F_SETFD, FD_CLOEXEC);
    struct kevent ended{};
    EV_SET(&ended, static_cast<decltype(ended.ident)>(id), EVFILT_PROC, EV_ADD | EV_ONESHOT, NOTE_EXIT, 0,
           nullptr);
    if (::kevent(queue, &ended, 1, nullptr, 0, nullptr) == 0) {
        descriptor = queue;
        return 0;
    }
    const int error = errno;
    close_descriptor(queue);
    return error == ESRCH && how_process_ended(-1, id) ? open_ended(descriptor) : error;
}

std::optional<process_ending> how_process_ended(int, process_number id) noexcept {
#if defined(WNOWAIT)
    return peek_at_child(P_PID, static_cast<id_t>(id));
#else
    (void)id;
    return std::nullopt;
#endif
}

}  // namespace tocsin::platform
