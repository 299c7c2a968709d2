// SPDX-License-Identifier: Apache-2.0
#include "platform/poller/pipe_doorbells.hpp"

#include "platform/poller/poll_list.hpp"
#include "platform/system/cancellation_disabled.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

// The pool is never destroyed, because rings are allowed after main.
constinit doorbell_pool own_pipes;
constinit void* pipes_in_use = &own_pipes;  // the pool that all copies of the library in the process use
const pool_owner owns_pipes(own_pipes, answer_if_struck<pipe_doorbells>);

}  // namespace

doorbell_pool& pipe_doorbells::doorbells() noexcept { return *static_cast<doorbell_pool*>(pipes_in_use); }

void*& pipe_doorbells::shared_state() noexcept { return pipes_in_use; }

int pipe_doorbells::make_doorbell(int (&ends)[2]) noexcept {
    int made[2];
#if defined(__APPLE__)  // no pipe2: if a fork comes before FD_CLOEXEC is set, the child's exec keeps the pipe
    if (::pipe(made) != 0) return errno;
    for (const int each : made) {
        ::fcntl(each, F_SETFD, FD_CLOEXEC);
        ::fcntl(each, F_SETFL, O_NONBLOCK);
    }
#else
    if (::pipe2(made, O_NONBLOCK | O_CLOEXEC) != 0) return errno;
#endif
    ends[0] = made[1];
    ends[1] = made[0];
    return 0;
}

void pipe_doorbells::strike(int descriptor, bool) noexcept {
    const cancellation_disabled here;
    const char byte = 0;
    while (::write(descriptor, &byte, 1) < 0 && errno == EINTR) {
    }
}

bool pipe_doorbells::was_rung(doorbell& bell, int found) noexcept {
    if (!is_struck(found, struck(bell))) return false;
    const cancellation_disabled here;
    char byte;
    while (::read(bell.wait_end(), &byte, 1) < 0 && errno == EINTR) {
    }
    bell.answer();
    return true;
}

}  // namespace tocsin::platform
