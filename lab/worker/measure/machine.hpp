// What the harness asks of the operating system: cores, pinning, who is asleep.
#pragma once

#include <cstdint>
#include <span>
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

// Voluntary and involuntary switches of these threads since they began.
std::uint64_t context_switches_of(std::span<const pid_t> threads);

// Open descriptors of this process.
std::uint64_t open_descriptors();

// Bytes of this process's memory that are in RAM.
std::uint64_t resident_bytes();

}  // namespace lab
