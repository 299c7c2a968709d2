// What the harness asks of the operating system: cores, pinning, who is asleep. One file for each system.
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
// Pins to the `index`-th usable core, round and round.
bool pin_to_nth(std::size_t index) noexcept;
// The same for another thread of this process.
bool pin_thread_to_nth(pid_t thread, std::size_t index) noexcept;

// The calling thread, once woken, waits for its turn even where it could push out the one that runs.
void never_preempt_others() noexcept;

// Timers of the calling thread as exact as the kernel can make them, instead of up to 50 us late.
void exact_timers() noexcept;

pid_t thread_id() noexcept;

// Waits until every one of these threads sleeps in the kernel and still does after a moment (a waiter may
// spin, or take a lock, first). False if that hasn't happened after `patience_ms`.
bool wait_until_asleep(std::span<const pid_t> threads, int patience_ms = 5'000);

// Whether the system tells of context switches; if not, the next two know none.
#if defined(_WIN32)
inline constexpr bool counts_switches = false;
#else
inline constexpr bool counts_switches = true;
#endif

// Of all threads of this process so far.
std::uint64_t context_switches();

// Voluntary and involuntary switches of these threads since they began.
std::uint64_t context_switches_of(std::span<const pid_t> threads);

// Open descriptors (Windows: handles) of this process.
std::uint64_t open_descriptors();

// As many as the process is permitted to open.
void allow_descriptors();

// Bytes of this process's heap that are in use.
double heap_in_use();

// Bytes of this process's memory that are in RAM.
std::uint64_t resident_bytes();

// A call that enters the kernel and does nothing there.
void enter_kernel() noexcept;

#if defined(_WIN32)
// Whether the environment of this process names that way to sleep for tocsin; and this command line in a process whose
// environment does: its exit code.
bool started_with(std::string_view futex);
int start_with(std::string_view futex);
#endif

// Ends the process with exit code 3 after so many seconds: a contestant that loses a wake-up would hang for ever.
void start_watchdog(unsigned seconds);
inline constexpr char watchdog_message[] = "watchdog: did not finish; a lost wake-up?\n";

}  // namespace lab
