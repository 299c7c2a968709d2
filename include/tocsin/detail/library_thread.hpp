// SPDX-License-Identifier: Apache-2.0
// For background threads of the libraries above this one.
#pragma once

#include <tocsin/detail/config.hpp>

#if !defined(_WIN32)
namespace tocsin::detail {

// On Linux: gives a thread the scheduling policy, the nice value, the processors and the timer slack that the program's
// first thread had when the library was loaded. What the system refuses stays. Does nothing on other systems. The new
// thread calls the first function. Its maker calls the second, because a thread that has its maker's priority may not
// run soon, with a pointer to the pthread_t of a thread that is joinable. Never fails; up to three system calls each.
TOCSIN_API void schedule_this_library_thread() noexcept;
TOCSIN_API void schedule_library_thread(const void* pthread) noexcept;

}  // namespace tocsin::detail
#endif
