// SPDX-License-Identifier: Apache-2.0
// Enlarges the kernel's table of the process's sleeping threads when the process has many threads.
//
// Since Linux 6.16, each process has a futex table of its own. Its size follows the processors and not the threads: 16
// slots on two processors, however many threads sleep. A wake searches one slot, so each wake becomes slower with every
// thread that sleeps somewhere else in the process. prctl(PR_FUTEX_HASH) tells the number of slots and sets it.
//
// When: a thread counts before its first sleep and before every 256th. Every 64th count of the process is a *look*,
// which compares the slots with the threads. If there are 16 threads or more for each slot, the look sets the slots to
// the power of two that is at least 4 times the threads. So a process sets the slots when it has 256 threads (1,024
// slots), and next when it has 16,384 (65,536 slots, which is the most). A slot takes 64 bytes of the kernel's memory.
//
// The caller is the thread whose count makes the look. The call takes the kernel 20 to 45 ms on an idle machine (Linux
// 6.18, two cores) and up to 200 ms on a busy one, because the kernel waits for a grace period of RCU. The other
// threads are not held up. So a thread makes the call only if it is about to sleep without a deadline, or with one that
// is more than 100 ms away, and if its scheduling policy is not a real-time one. Otherwise a later look makes the call.
//
// Others that set the slots: the program, or another copy of the library. If there are more slots than the kernel
// chooses on its own, and this object has not set them, somebody else has chosen, and this object looks no more. It
// also looks no more if a call fails: the kernel is older (EINVAL), the table is frozen or is the global one (EBUSY, or
// no slots), a filter refuses the call, memory is short, or /proc is missing.
//
// fork and exec: the kernel gives the child, or the new program, a table of the usual size. The object begins again in
// the child (sleeper_table_linux.cpp).
//
// Memory order: all accesses are relaxed, because nothing is published. `state_` lets one thread look at a time, by
// atomicity alone. `ours_` is used only by that thread: [table-look] orders its accesses.
//
// Checked by: tests/internal/table_growth_test.cpp (over a kernel that the test makes up) and
// tests/unit/futex_table_test.cpp (over the running one).
#pragma once

#include <tocsin/deadline.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace tocsin::platform {

// A Kernel has these functions, which are called by looks only:
//     long slots();                    the table's slots; 0 if the process has no table of its own; -1: no such call
//     long usual_slots();              the most slots that the kernel chooses on its own on this machine
//     long threads();                  of the process; -1 if that is unknown
//     bool is_urgent();                whether the calling thread has a real-time policy
//     bool set_slots(std::uint32_t);   whether that has succeeded
class table_growth {
public:
    static constexpr std::uint32_t sleeps_a_count = 256;
    static constexpr std::uint32_t counts_a_look = 64;
    static constexpr long max_threads_a_slot = 16;
    static constexpr long slots_a_thread = 4;
    static constexpr long max_slots = 1L << 16;
    static constexpr std::int64_t may_be_late = 100'000'000;  // nanoseconds

    // Called by a thread before its first sleep and before every `sleeps_a_count`-th. It is to sleep until `until`.
    template <class Kernel>
    void count(const deadline& until, Kernel& kernel) noexcept {
        // No order: a statistic.
        if (counts_.fetch_add(1, std::memory_order_relaxed) % counts_a_look != counts_a_look - 1) return;
        if (!is_allowed_.load(std::memory_order_relaxed)) return;  // no order: a setting
        auto seen = idle;
        if (!state_.compare_exchange_strong(seen, looking, std::memory_order_acquire,  // [table-look]
                                            std::memory_order_relaxed))
            return;
        state_.store(look(until, kernel) ? idle : over, std::memory_order_release);  // [table-look]
    }

    // Does not end a look that is under way.
    void allow(bool allowed) noexcept {
        is_allowed_.store(allowed, std::memory_order_relaxed);  // no order: a setting
    }
    bool is_allowed() const noexcept {
        return is_allowed_.load(std::memory_order_relaxed);  // no order: a setting
    }

    // Called in the child of a fork.
    void begin_anew() noexcept {
        ours_ = 0;
        state_.store(idle, std::memory_order_relaxed);  // no order: the child has one thread
    }

private:
    enum state : std::uint8_t { idle, looking, over };

    // Returns whether there may be further looks.
    template <class Kernel>
    bool look(const deadline& until, Kernel& kernel) noexcept {
        const long slots = kernel.slots();
        if (slots <= 0) return false;
        if (slots != ours_ && slots > kernel.usual_slots()) return false;
        const long threads = kernel.threads();
        if (threads < 0) return false;
        if (threads / max_threads_a_slot < slots) return true;
        const long wanted =
            std::min(max_slots, static_cast<long>(std::bit_ceil(static_cast<unsigned long>(threads) *
                                                                static_cast<unsigned long>(slots_a_thread))));
        if (wanted <= slots) return false;
        if (!until.is_never() && until.remaining() < may_be_late) return true;
        if (kernel.is_urgent()) return true;
        if (!kernel.set_slots(static_cast<std::uint32_t>(wanted))) return false;
        ours_ = wanted;
        return true;
    }

    std::atomic<std::uint32_t> counts_{0};
    std::atomic<state> state_{idle};
    std::atomic<bool> is_allowed_{true};
    long ours_ = 0;  // the slots that this object has set; 0: none
};

}  // namespace tocsin::platform
