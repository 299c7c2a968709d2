// SPDX-License-Identifier: Apache-2.0
// What the harness asks of the operating system: cores, pinning, which threads sleep. One source file for each system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace lab {

// The cores this process may use, in ascending order.
const std::vector<int>& usable_cores();

// Pins the calling thread. False where that is not permitted.
bool pin_to(int core) noexcept;
// Pins the calling thread to the `index`-th usable core, modulo their number.
bool pin_to_nth(std::size_t index) noexcept;
// The same for another thread of this process.
bool pin_thread_to_nth(pid_t thread, std::size_t index) noexcept;

// From now on the calling thread, once woken, waits for its turn even where it could preempt the running thread.
void never_preempt_others() noexcept;

// Makes timers of the calling thread as exact as the kernel can, instead of up to 50 us late.
void exact_timers() noexcept;

pid_t thread_id() noexcept;

// Waits until all of these threads sleep in the kernel and still do after a moment (a waiter may spin, or take a lock,
// first). False if that hasn't happened after `patience_ms`.
bool wait_until_asleep(std::span<const pid_t> threads, int patience_ms = 5'000);

// Whether the system counts context switches; if not, the next two functions return 0.
#if defined(_WIN32)
inline constexpr bool counts_switches = false;
#else
inline constexpr bool counts_switches = true;
#endif

// Of all threads of this process so far.
std::uint64_t context_switches();

// Voluntary and involuntary switches of these threads since they started.
std::uint64_t context_switches_of(std::span<const pid_t> threads);

// Open descriptors (Windows: handles) of this process.
std::uint64_t open_descriptors();

// Raises the limit of open descriptors as far as the process is permitted to.
void allow_descriptors();

// Bytes of this process's heap that are in use.
double heap_in_use();

// Bytes of this process's memory that are in RAM.
std::uint64_t resident_bytes();

// A call that enters the kernel and does nothing there.
void enter_kernel() noexcept;

#if defined(_WIN32)
// Whether the environment of this process tells tocsin to sleep in that way.
bool started_with(std::string_view futex);
// Runs this command line in a process whose environment tells tocsin that, and returns its exit code.
int start_with(std::string_view futex);
#endif

// Ends the process with exit code 3 after that many seconds: a contestant that loses a wake-up would hang for ever.
void start_watchdog(unsigned seconds);
inline constexpr char watchdog_message[] = "watchdog: did not finish; a lost wake-up?\n";

}  // namespace lab
