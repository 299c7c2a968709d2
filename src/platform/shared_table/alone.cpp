// SPDX-License-Identifier: Apache-2.0
// For systems on which copies of the library in one process do not find each other, such as macOS. (ELF systems have
// notes by which the copies find each other: elf.cpp. Mach-O headers have no notes.) Each copy has its own table of
// waiters, so an event used through two copies loses wake-ups. On such a system, link one copy, as a shared library.
#include "platform/shared_table/shared_table.hpp"
#include "platform/shared_table/thread_slots.hpp"

namespace tocsin::platform {

constinit thread_local thread_block own_thread_block{};
constinit std::uintptr_t distance_to_first_block = 0;

void* adopt_first_copy(void* own, std::uint64_t) noexcept { return own; }

}  // namespace tocsin::platform
