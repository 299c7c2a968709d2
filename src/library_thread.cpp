// SPDX-License-Identifier: Apache-2.0
// Threads of win32/ are scheduled like those of this library (platform/system/scheduling_linux.hpp).
#include "platform/system/system.hpp"

#include <tocsin/detail/library_thread.hpp>

#if !defined(_WIN32)
namespace tocsin::detail {

void schedule_this_library_thread() noexcept { platform::schedule_this_thread(); }
void schedule_library_thread(const void* pthread) noexcept { platform::schedule_thread(pthread); }

}  // namespace tocsin::detail
#endif
