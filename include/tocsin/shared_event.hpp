// SPDX-License-Identifier: Apache-2.0
// Events in memory that several processes share, with the contract of event.hpp:
//
//     auto memory = tocsin::shared_memory::open_or_create("/jobs", sizeof(tocsin::shared_auto_reset_event));
//     auto& ready = tocsin::shared_at<tocsin::shared_auto_reset_event>(memory.data(), memory.size());
//     ready.wait();      // in another process: ready.set();
//
// An event is a plain object. Memory full of zeros is an unset event, in any shared mapping (shared_memory.hpp, or your
// own), at any address that is a multiple of 64, and at another address in each process. Nothing needs to be
// constructed, and nothing is to be destroyed. The layout is the same for 32-bit and 64-bit programs of one machine
// (detail/shared_layout.hpp). A program whose version of the library has another layout is refused.
//
// A process may be killed at any instruction of any call, and may be stopped (SIGSTOP, a debugger). No other process
// is held up by that. What had been handed to a thread that died is passed to the next.
// docs/between_processes.md says what holds when, and why.
//
// Every wait throws std::system_error and leaves the event as it was:
// - no_buffer_space: all 31 slots of an auto-reset event are taken by threads that wait. (A manual-reset event has room
//   for any number.)
// - invalid_argument: the memory holds an object of another kind or version.
// - function_not_supported: the wait would have to sleep, and the system is not Linux.
// - state_not_recoverable: another process changes the memory without end. Calls that set may throw this, too.
// Other processes may write anything into the memory. Then waits may end too early or never, or throw; nothing worse
// happens.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/detail/shared_source.hpp>
#include <tocsin/detail/shared_tokens.hpp>
#include <tocsin/detail/shared_waits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <cstdint>

namespace tocsin {
namespace detail {

TOCSIN_API void shared_gate_set_slow(shared_header& header) noexcept;
TOCSIN_API wait_status shared_gate_wait(shared_header& header, const deadline& until, const stop_token* stop);
}  // namespace detail

// A gate, as manual_reset_event. 64 bytes, for any number of waiting threads.
class shared_manual_reset_event : public detail::shared_waits<shared_manual_reset_event> {
public:
    // For the library: what the memory holds, and how many threads can wait at one time (0: any number).
    static constexpr auto kind = detail::shared_kind::manual_reset_event;
    static constexpr unsigned slots = 0;
    // As in a custom source: wait_all() refuses it (source.hpp).
    static constexpr bool stays_ready = false;

    constexpr shared_manual_reset_event() noexcept = default;
    shared_manual_reset_event(const shared_manual_reset_event&) = delete;
    shared_manual_reset_event& operator=(const shared_manual_reset_event&) = delete;

    // Releases every thread that waits, in all processes, also if reset() follows at once. Cost: one
    // read-modify-write, or one system call if a thread has begun to sleep since the last reset(). That call sets the
    // event and wakes all sleepers in one step, so a kill can't come between.
    void set() noexcept {
        std::uint32_t seen = word().load(std::memory_order_relaxed);  // no order: the exchange decides
        for (;;) {
            if ((seen & (detail::shared_set | detail::shared_sleepers)) == detail::shared_sleepers)
                return detail::shared_gate_set_slow(header_);
            // [gate] with the acquire of whoever passes, also if the event is set already
            if (word().compare_exchange_weak(seen, seen | detail::shared_set, std::memory_order_release,
                                             std::memory_order_relaxed))
                return;
        }
    }

    // Makes the event unset. Threads that have been released stay released. Cost: one read-modify-write.
    void reset() noexcept {
        std::uint32_t seen = word().load(std::memory_order_relaxed);  // no order: the exchange decides
        const auto next = [&seen] {
            return (seen & ~(detail::shared_set | detail::shared_sleepers)) + detail::shared_round;
        };
        // [gate] acquires what the sets that it undoes have published, and releases for those who find the next round
        while ((seen & detail::shared_set) != 0 &&
               !word().compare_exchange_weak(seen, next(), std::memory_order_acq_rel,
                                             std::memory_order_relaxed)) {
        }
    }

    // Whether the event is set right now. Cost: one load.
    [[nodiscard]] bool is_set() const noexcept {
        return (word().load(std::memory_order_acquire) & detail::shared_set) != 0;  // [gate]
    }
    [[nodiscard]] bool try_wait() const noexcept { return is_set(); }

    // wait(), wait_for(), wait_until(), each also with a stop token: as those of manual_reset_event, but they may
    // throw (see above).

    // As a source, for wait_any() and all other waits for the first of several sources but those of a wait_set:
    // detail/shared_source.hpp says what such a wait costs and how it fails.
    operator source() & TOCSIN_LIFETIMEBOUND { return detail::shared_source(header_, kind); }

private:
    friend detail::shared_waits<shared_manual_reset_event>;

    wait_status wait_with(const deadline& until, const stop_token* stop) {
        return is_set() ? wait_status::signaled : detail::shared_gate_wait(header_, until, stop);
    }
    detail::atomic<std::uint32_t>& word() noexcept { return header_.tickets; }
    const detail::atomic<std::uint32_t>& word() const noexcept { return header_.tickets; }

    detail::shared_header header_;
};

// A token, as auto_reset_event. 2 KiB: 64 bytes, and 64 for each of the 31 threads that can wait at one time.
class shared_auto_reset_event : public detail::shared_waits<shared_auto_reset_event> {
public:
    // For the library: what the memory holds, and how many threads can wait at one time (0: any number).
    static constexpr auto kind = detail::shared_kind::auto_reset_event;
    static constexpr unsigned slots = 31;
    // As in a custom source: wait_all() refuses it (source.hpp).
    static constexpr bool stays_ready = false;

    constexpr shared_auto_reset_event() noexcept = default;
    shared_auto_reset_event(const shared_auto_reset_event&) = delete;
    shared_auto_reset_event& operator=(const shared_auto_reset_event&) = delete;

    // Hands the event to the thread that has waited longest. If nobody waits, the event stays set until a wait takes
    // it. Two set() calls release two waiting threads. If the thread dies before it has taken the event, the next
    // waiting thread gets it at once, or, if nobody waits by then, whoever asks next. Cost: one read-modify-write; if
    // threads have waited lately, a look at each slot, and a system call to wake. Throws only state_not_recoverable.
    void set() {
        std::uint64_t seen =
            object_.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
        // [token] releases, also if the event is set already.
        if ((seen & detail::shared_queued) != 0 ||
            !object_.header.control.compare_exchange_strong(seen, seen | 1, std::memory_order_release,
                                                            std::memory_order_relaxed))
            (void)detail::shared_token_give(parts(), 1);
    }

    // Makes the event unset. What had been handed to a thread stays handed, unless that thread has died.
    void reset() noexcept {
        (void)detail::shared_token_try(parts());
        detail::shared_token_drop(parts());
    }

    // Whether the event is set, and nobody has it in hand. Cost: one load.
    [[nodiscard]] bool is_set() const noexcept {
        return static_cast<std::uint32_t>(object_.header.control.load(std::memory_order_acquire)) !=
               0;  // [token]
    }
    // Takes the event if it is set.
    [[nodiscard]] bool try_wait() noexcept { return detail::shared_token_try(parts()); }

    // wait(), wait_for(), wait_until(), each also with a stop token: as those of auto_reset_event, but they may throw
    // (see above).

    // As a source (see shared_manual_reset_event). The wait takes the event if it takes the source.
    operator source() & TOCSIN_LIFETIMEBOUND { return detail::shared_source(object_.header, kind); }

private:
    friend detail::shared_waits<shared_auto_reset_event>;
    wait_status wait_with(const deadline& until, const stop_token* stop) {
        return try_wait() ? wait_status::signaled : detail::shared_token_wait(parts(), until, stop);
    }
    detail::shared_parts parts() noexcept { return {object_.header, object_.slots, slots, kind}; }

    detail::shared_object<slots> object_;
};

}  // namespace tocsin
