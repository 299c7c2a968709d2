// SPDX-License-Identifier: Apache-2.0
// Counts the system calls of this process and of the threads that it creates afterwards, with the kernel's tracepoint
// raw_syscalls:sys_enter. Tracing makes every call a little slower, so separate runs count, and their times are thrown
// away.
#pragma once

#include <cstdint>
#include <string>

namespace lab {

class syscall_counter {
public:
    // Construct before the first thread is created. If counting is impossible, why_not() says why.
    syscall_counter();
    ~syscall_counter();
    syscall_counter(const syscall_counter&) = delete;
    syscall_counter& operator=(const syscall_counter&) = delete;

    bool is_open() const noexcept { return descriptor_ >= 0; }
    const std::string& why_not() const noexcept { return why_not_; }

    void start() noexcept;
    // System calls since start(), without the counter's own.
    std::uint64_t stop() noexcept;

private:
    std::uint64_t read_count() const noexcept;

    int descriptor_ = -1;
    std::uint64_t before_ = 0;
    std::string why_not_;
};

}  // namespace lab
