// SPDX-License-Identifier: Apache-2.0
// The end of a process, as a source. State: a descriptor that the kernel makes readable (on Windows: a HANDLE that it
// signals), once and for ever. Nothing here is concurrent: the poller waits for the descriptor as for any other.
//
// Checked by: tests/unit/process_test.cpp, windows_process_test.cpp.
#include "platform/process/process.hpp"

#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/process.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace tocsin {
namespace {

void check_opened(int error) {
    if (error == 0) return;
    const char* const what =
        error == ENOSYS || error == EPERM
            ? "tocsin::process_end: the system or its sandbox has no pidfd_open (Linux 5.3)"
            : "tocsin::process_end";
    detail::throw_or_die(std::system_error(error, platform::error_category(), what));
}

}  // namespace

process_end::process_end(number id) : id_(id) {
    if (id <= 0)
        detail::throw_or_die(std::invalid_argument("tocsin::process_end: a process has a number above 0"));
    check_opened(platform::open_process(id, descriptor_));
}

#if defined(_WIN32)
process_end::process_end(void* handle) { check_opened(platform::duplicate_process(handle, descriptor_)); }
#endif

process_end::~process_end() { platform::close_descriptor(descriptor_); }

bool process_end::try_wait() const noexcept {
    platform::poll_entry one{descriptor_, asked};
    return platform::poller::poll({&one, 1}, platform::no_doorbell, std::chrono::nanoseconds(0)).ready != 0;
}

std::optional<process_exit> process_end::exit_status() const noexcept {
    const auto how = platform::how_process_ended(descriptor_, id_);
    if (!how) return std::nullopt;
    return process_exit{how->code, how->by_signal};
}

}  // namespace tocsin
