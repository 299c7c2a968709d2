// SPDX-License-Identifier: Apache-2.0
// Wakes threads that sleep inside the standard library, where a wait may miss its wake-up. Why it may is in
// detail/stop_callback.hpp.
#pragma once

namespace tocsin::platform {

// From this call to the matching end_repeated_wakes(), a thread of the library wakes everything that sleeps in a
// semaphore of the standard library, about once a millisecond (on Windows, at the system's next tick). The woken
// threads look at their semaphores again. The thread starts at the first call. If the system can't start it, nothing is
// woken. Where the standard library's waits are sound, both functions do nothing.
void begin_repeated_wakes() noexcept;
void end_repeated_wakes() noexcept;
// Called in the child of a fork: there the count is zero, and the thread does not run.
void forget_repeated_wakes() noexcept;

}  // namespace tocsin::platform
