// SPDX-License-Identifier: Apache-2.0
// Windows has no public way to count system calls.
#include "syscall_counter.hpp"

namespace lab {

syscall_counter::syscall_counter() : why_not_("the system has no public way to count them") {}
syscall_counter::~syscall_counter() = default;
void syscall_counter::start() noexcept {}
std::uint64_t syscall_counter::stop() noexcept { return 0; }
std::uint64_t syscall_counter::read_count() const noexcept { return 0; }

}  // namespace lab
