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

#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

namespace tocsin {
namespace {

[[noreturn]] void refuse(int error, const std::string& what) {
    detail::throw_or_die(
        std::system_error(error, platform::error_category(), "tocsin::process_end: " + what));
}

}  // namespace

process_end::process_end(number id) : id_(id) {
    if (id <= 0)
        detail::throw_or_die(std::invalid_argument("tocsin::process_end: a process has a number above 0"));
    const int error = platform::open_process(id, descriptor_);
    if (error == 0) return;
    const std::string named = std::to_string(id);
    if (error == ENOSYS)
        refuse(error, "the system or its sandbox has no descriptor for this (Linux: pidfd_open, since 5.3)");
    if (error == EPERM || error == EACCES)
        refuse(error, "process " + named + ": the system or its sandbox forbids it (Linux: pidfd_open)");
    refuse(error, (error == ESRCH ? "no process has the number " : "process ") + named);
}

#if defined(_WIN32)
process_end::process_end(void* handle) {
    if (const int error = platform::duplicate_process(handle, descriptor_); error != 0)
        refuse(error, "a HANDLE");
}
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
