// SPDX-License-Identifier: Apache-2.0
// What a wait tries before it sleeps, learned per address.
//
// Addresses with the same hash form a class. (If different addresses share a class, guesses become worse, but no result
// becomes wrong.) Each class has a history, which is one word (spin_history.hpp: the policy). A wait takes these steps:
//   1. A wait for permits yields if permits are held for a moment only (semaphore_credit.hpp).
//   2. It looks, if the history says so and it has not yielded: a short look.
//   3. It queues. (A wait for a lock queues only after step 5, because a lock is not handed over to a queued thread.)
//   4. It looks, if the history says so and it has not looked yet: a long look, any look of a wait that has yielded in
//      step 1, or any look in a condition's wait, which holds its caller's lock until it is queued.
//   5. It yields, if the history says so and it has not yielded yet.
//   6. It sleeps. It tells the history if it was released before it was asleep. Some waits also measure how long they
//      take from their release until they run (core/lot/wake_sample.hpp).
// Step 1 has a credit of its own (semaphore_credit.hpp). The rest of this comment is about the other steps, except the
// bounds, which hold for step 1, too.
//
//   Looking pays when the signal comes from another processor within microseconds. It never pays when the signaller
//   needs this processor, or when signals are far apart.
//   Yielding pays when the signaller is ready to run but waits for a processor, because there are more threads than
//   processors. A yield that returns late has let an unrelated thread run. That is worse than sleeping, because the
//   system puts a woken sleeper in front of unrelated threads. So a late yield ends all credit for yielding, whether
//   the wait was over after it or not.
//
// The accesses to a history are relaxed: a race loses an update of the history, nothing more.
//
// Bounds: a look ends, at the latest, after the time that the spin_policy gives it, and an adaptive one after 100 us.
// Yielding ends after `max_yields` yields. Neither depends on a step of another thread, so no choice of priorities can
// make a thread hang here. On one processor no thread spins.
//
// The constants were measured: docs/decisions/0005-spin.md, docs/decisions/0056-bursts-of-looks.md.
//
// Checked by: tests/unit/spin_test.cpp; the policy by tests/internal/spin_history_test.cpp.
#include "core/wait/spinner.hpp"

#include "core/lot/key_hash.hpp"
#include "core/lot/relay.hpp"
#include "core/sync/counters.hpp"
#include "core/wait/debugger_layout.hpp"  // so every program that waits has the symbol
#include "core/wait/semaphore_credit.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace tocsin::core {
namespace {

constexpr std::int64_t late_yield = 60'000;  // nanoseconds

constexpr std::size_t classes = std::size_t{1} << 10;
constinit detail::atomic<std::uint64_t> histories[classes]{};

std::size_t class_of(const wait_key& key) noexcept { return key_hash(key).index % classes; }

#if defined(TOCSIN_MODEL)
// All runs of a model must be the same. So nothing is learned there, and no time passes. Under the adaptive policy, no
// thread looks. A thread yields only before it queues for permits, and there it always does.
struct no_history {
    static spin_history::advice begin_wait() noexcept { return {}; }
    static void end_look(const spin_history::advice&, bool, std::int64_t) noexcept {}
    static void end_yields(bool, bool) noexcept {}
    static void end_early(const spin_history::advice&) noexcept {}
    static void assume_wake() noexcept {}
    static void note_wake(std::int64_t) noexcept {}
    static void note_sleep(std::int64_t) noexcept {}
};
no_history read(const detail::atomic<std::uint64_t>&) noexcept { return {}; }
void write(detail::atomic<std::uint64_t>&, const no_history&) noexcept {}
std::int64_t now() noexcept { return 0; }

struct always {
    static void begin_use(std::uint16_t, std::uint32_t) noexcept {}
    static void end_use(std::uint16_t, std::uint32_t) noexcept {}
    static bool allows() noexcept { return true; }
    static void learn(bool, bool) noexcept {}
};
constinit always permit_uses[classes]{};
#else
spin_history read(const detail::atomic<std::uint64_t>& slot) noexcept {
    return spin_history::unpacked(slot.load(std::memory_order_relaxed));  // no order: a guess
}

void write(detail::atomic<std::uint64_t>& slot, const spin_history& now) noexcept {
    const std::uint64_t packed = now.packed();
    // No order: a guess. The word is written only if it changes, so that many waiters can share its cache line.
    if (slot.load(std::memory_order_relaxed) != packed) slot.store(packed, std::memory_order_relaxed);
}

std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

constinit semaphore_credit permit_uses[classes]{};
#endif

std::uint16_t mark_of_this_thread() noexcept {
    return static_cast<std::uint16_t>(detail::golden_hash(platform::thread_mark()) >> 48);
}

template <class Learn>
void learn(detail::atomic<std::uint64_t>& slot, Learn from) noexcept {
    auto known = read(slot);
    from(known);
    write(slot, known);
}

constinit detail::atomic<spin_policy> policy_of_process{spin_policy::adaptive()};

}  // namespace

void set_process_policy(spin_policy policy) noexcept {
    const bool restore = policy.which() == spin_policy::mode::process;
    policy_of_process.store(restore ? spin_policy::adaptive() : policy,
                            std::memory_order_relaxed);  // no order
}

spin_policy process_policy() noexcept {
    return policy_of_process.load(std::memory_order_relaxed);  // no order: a setting
}

spin_policy policy_of(const detail::wait_options& options) noexcept {
    return options.spin.which() != spin_policy::mode::process ? options.spin : process_policy();
}

wait_key learned_for(const wait_key& key, detail::event_use use) noexcept {
    if (use != detail::event_use::latch) return key;
    return {reinterpret_cast<const void*>(platform::thread_mark()), key.what};
}

#if !defined(TOCSIN_MODEL)
spin_history history_of(const wait_key& key) noexcept { return read(histories[class_of(key)]); }
#endif

spinner::spinner(const wait_key& key, const detail::wait_options& options, bool measures) noexcept
    : options_(options), class_(class_of(key)), history_(histories[class_]) {
    const spin_policy policy = policy_of(options);
    const bool may_look = platform::processors() > 1 && policy.longest().count() > 0;
    longest_ = policy.longest().count();
    burns_ = policy.which() == spin_policy::mode::fixed && may_look;
    if (policy.which() != spin_policy::mode::adaptive) return;

    advise(measures);
    advice_.look = may_look ? std::min(advice_.look, longest_) : 0;
    advice_.measures &= may_look;
    yields_left_ = advice_.yields ? spin_history::max_yields : 0;
}

void spinner::advise(bool measures) noexcept {
#if !defined(TOCSIN_MODEL)
    const std::uint64_t packed = history_.load(std::memory_order_relaxed);  // no order: a guess
    is_steady_ = spin_history::is_steady(packed);
    if (is_steady_) {
        advice_ = spin_history::steady_advice(packed);
        return;
    }
#endif
    learn(history_, [this, measures](auto& known) noexcept {
        if (!measures) known.assume_wake();
        advice_ = known.begin_wait();
    });
}

void spinner::end_early() noexcept { learn_sleep({.early = true}); }

claim spinner::spin_then_sleep(waiter& self) noexcept {
    if (while_parked([&self]() noexcept { return self.is_released(); })) return finish(self);
    sleep_report report{.measures = advice_.measures};
    const claim how = core::sleep(self, options_, &report);
    learn_sleep(report);
    return how;
}

claim spinner::sleep(waiter& self, const deadline& until) noexcept {
    sleep_report report{.measures = advice_.measures};
    const claim how = core::sleep(self, until, &report);
    learn_sleep(report);
    return how;
}

void spinner::learn_sleep(const sleep_report& report) noexcept {
    if (!report.early && report.wake < 0 && report.slept < 0) return;
    if (policy_of(options_).which() != spin_policy::mode::adaptive) return;
    learn(history_, [&](auto& known) noexcept {
        if (report.early) known.end_early(advice_);
        if (report.wake >= 0) known.note_wake(report.wake);
        if (report.slept >= 0) known.note_sleep(report.slept);
    });
}

bool spinner::keep_looking(std::int64_t longest) noexcept {
    const std::int64_t time = now();
    if (spin_until_ == 0) spin_until_ = time + longest;
    if (time >= spin_until_ || options_.until.has_passed()) return false;
    return options_.stop == nullptr || !options_.stop->stop_requested();
}

bool spinner::try_yield() noexcept {
    if (yields_left_ == 0 || late_ || options_.until.has_passed()) return false;
    --yields_left_;
    yielded_ = true;
    const std::int64_t before = now();
    platform::yield_thread();
    late_ = now() - before > late_yield;
    return true;
}

bool spinner::may_yield_before_parking() noexcept {
    if (policy_of(options_).which() != spin_policy::mode::adaptive || !permit_uses[class_].allows())
        return false;
    yields_left_ = semaphore_credit::max_yields;
    yields_early_ = true;
    return true;
}

void spinner::begin_use() const noexcept {
    permit_uses[class_].begin_use(mark_of_this_thread(), static_cast<std::uint32_t>(now()));
}

void spinner::end_use(const wait_key& semaphore) noexcept {
    permit_uses[class_of(semaphore)].end_use(mark_of_this_thread(), static_cast<std::uint32_t>(now()));
}

bool spinner::learn_early_yield(bool success) noexcept {
    permit_uses[class_].learn(success, late_);
    yields_left_ = 0;
    yielded_ = false;
    if (success) count(counter::yielded);
    return success;
}

bool spinner::learn_look(bool success) noexcept {
    if (is_steady_ && success) return count_spin(true);
    // The time of a short look is not needed, and the clock is not read before the first few looks have failed.
    const bool timed = advice_.is_long && success && spin_until_ != 0;
    const std::int64_t took = timed ? now() - (spin_until_ - advice_.look) : success ? 0 : advice_.look;
    learn(history_, [&](auto& known) noexcept { known.end_look(advice_, success, took); });
    return count_spin(success);
}

bool spinner::learn_yield(bool success) noexcept {
    if (!yielded_) return false;
    learn(history_, [&](auto& known) noexcept { known.end_yields(success, late_); });
    if (success) count(counter::yielded);
    return success;
}

bool spinner::count_spin(bool success) noexcept {
    if (success) count(counter::spun);
    return success;
}

}  // namespace tocsin::core
