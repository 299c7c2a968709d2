// SPDX-License-Identifier: Apache-2.0
#include "syscall_counter.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lab {
namespace {

constexpr const char* tracefs = "/sys/kernel/tracing";

std::uint64_t read_tracepoint_id() {
    std::uint64_t id = 0;
    std::ifstream(std::string(tracefs) + "/events/raw_syscalls/sys_enter/id") >> id;
    return id;
}

// Where tracefs isn't mounted, this mounts it for this process alone, in a mount namespace that ends with the process.
// The machine is left as it was.
std::uint64_t find_tracepoint_id() {
    if (const std::uint64_t id = read_tracepoint_id(); id != 0) return id;
    if (unshare(CLONE_NEWNS) != 0) return 0;
    if (mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 0;
    if (mount("tracefs", tracefs, "tracefs", 0, nullptr) != 0) return 0;
    return read_tracepoint_id();
}

}  // namespace

syscall_counter::syscall_counter() {
    const std::uint64_t id = find_tracepoint_id();
    if (id == 0) {
        why_not_ = std::string("the tracepoint raw_syscalls:sys_enter can't be found (needs root): ") +
                   std::strerror(errno);
        return;
    }
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof attributes;
    attributes.config = id;
    attributes.disabled = 1;
    attributes.inherit = 1;  // threads created later count too
    descriptor_ =
        static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (descriptor_ < 0) why_not_ = std::string("perf_event_open: ") + std::strerror(errno);
}

syscall_counter::~syscall_counter() {
    if (descriptor_ >= 0) close(descriptor_);
}

std::uint64_t syscall_counter::read_count() const noexcept {
    std::uint64_t count = 0;  // of this thread and its descendants, even those that have ended
    if (read(descriptor_, &count, sizeof count) != sizeof count) return 0;
    return count;
}

void syscall_counter::start() noexcept {
    if (!is_open()) return;
    before_ = read_count();
    ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0);
}

std::uint64_t syscall_counter::stop() noexcept {
    if (!is_open()) return 0;
    ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0);  // counts itself: it enters the kernel before it disables
    const std::uint64_t counted = read_count() - before_;
    return counted == 0 ? 0 : counted - 1;
}

}  // namespace lab
