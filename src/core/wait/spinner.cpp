// SPDX-License-Identifier: Apache-2.0
// What a wait tries before it sleeps, learned per address.
//
// Addresses with the same hash form a class. (If different addresses share a class, guesses become worse, but no result
// becomes wrong.) Each class has a history, which is one word: two credits, one for spinning and one for yielding, and
// a count of waits. A wait takes these steps:
//   1. It spins if its class has credit for spinning.
//   2. A wait for permits yields if permits are held for a moment only (turn_credit.hpp).
//   3. It queues.
//   4. It yields if its class has credit for yielding, and it has not yielded yet.
//   5. It sleeps.
// Step 2 has a credit of its own (turn_credit.hpp). The rest of this comment is about steps 1 and 4, except the bounds,
// which hold for step 2, too.
//
// A failure costs more credit than a success earns. A wait that is a *probe* both spins and yields, whatever the
// credit. Only waits whose class lacks credit for spinning or for yielding can be probes. The word counts these waits
// down to the next probe. Probes become rarer the longer they have failed.
//
//   Spinning pays when the signal comes from another processor within microseconds. It never pays when the signaller
//   needs this processor, or when signals are far apart.
//   Yielding pays when the signaller is ready to run but waits for a processor, because there are more threads than
//   processors. A yield that returns late has let an unrelated thread run. That is worse than sleeping, because the
//   system puts a woken sleeper in front of unrelated threads. So a late yield ends all credit for yielding, whether
//   the wait was over after it or not.
//
// The accesses to a history are relaxed: a race loses an update of the history, nothing more.
//
// Bounds: spinning ends, at the latest, after the time that the policy gives it. Yielding ends after `most_yields`
// yields. Neither depends on a step of another thread, so no choice of priorities can make a thread hang here. On one
// processor no thread spins.
//
// The constants below were measured: docs/decisions/0005-spin.md.
//
// Checked by: tests/unit/spin_test.cpp.
#include "core/wait/spinner.hpp"

#include "core/lot/key_hash.hpp"
#include "core/sync/counters.hpp"
#include "core/wait/debugger_layout.hpp"
#include "core/wait/turn_credit.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <bit>
#include <chrono>
#include <iterator>

namespace tocsin::core {
namespace {

constexpr std::uint8_t most_credit = 15;
constexpr std::uint8_t first_credit = 2;
constexpr std::uint8_t failure_costs = 2;
constexpr std::uint8_t first_probe = 5;  // the first probe comes after 2^5 waits without credit,
constexpr std::uint8_t last_probe = 9;   // later probes after up to 2^9
constexpr unsigned most_yields = 8;
constexpr std::int64_t late_yield = 60'000;  // nanoseconds

constexpr std::size_t classes = std::size_t{1} << 10;
constinit detail::atomic<std::uint64_t> histories[classes]{};

std::size_t class_of(const wait_key& key) noexcept { return key_hash(key).index % classes; }

struct history {
    std::uint8_t spin = first_credit;
    std::uint8_t yield = first_credit;
    std::uint8_t probe = first_probe;
    std::uint8_t unused = 0;
    std::uint32_t waits_to_probe = 1u << first_probe;
};

#if defined(TOCSIN_MODEL)
// All runs of a model must be the same. So nothing is learned there, and no time passes. Under the adaptive policy, no
// thread spins. A thread yields only before it queues for permits, and there it always does.
history read(const detail::atomic<std::uint64_t>&) noexcept { return {.spin = 0, .yield = 0}; }
void write(detail::atomic<std::uint64_t>&, const history&) noexcept {}
std::int64_t now() noexcept { return 0; }

struct always {
    static void begin_turn(std::uint16_t, std::uint32_t) noexcept {}
    static void end_turn(std::uint16_t, std::uint32_t) noexcept {}
    static bool allows() noexcept { return true; }
    static void learn(bool, bool) noexcept {}
};
constinit always turns[classes]{};
#else
// Stored as the difference from a new history, so that a table of zeros is a table of new histories.
history read(const detail::atomic<std::uint64_t>& slot) noexcept {
    return std::bit_cast<history>(slot.load(std::memory_order_relaxed) ^  // no order: a guess
                                  std::bit_cast<std::uint64_t>(history{}));
}

void write(detail::atomic<std::uint64_t>& slot, const history& now) noexcept {
    const auto packed = std::bit_cast<std::uint64_t>(now) ^ std::bit_cast<std::uint64_t>(history{});
    // No order: a guess. The word is written only if it changes, so that many waiters can share its cache line.
    if (slot.load(std::memory_order_relaxed) != packed) slot.store(packed, std::memory_order_relaxed);
}

std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

constinit turn_credit turns[classes]{};
#endif

std::uint16_t mark_of_this_thread() noexcept {
    return static_cast<std::uint16_t>(detail::golden_hash(platform::thread_mark()) >> 48);
}

void reward(std::uint8_t& credit) noexcept {
    if (credit < most_credit) ++credit;
}

void punish(std::uint8_t& credit) noexcept {
    credit = credit > failure_costs ? static_cast<std::uint8_t>(credit - failure_costs) : std::uint8_t{0};
}

// Counts one wait towards the next probe; returns whether this wait is the probe.
bool count_towards_probe(history& known) noexcept {
    if (known.waits_to_probe > 1) {
        --known.waits_to_probe;
        return false;
    }
    if (known.probe < last_probe) ++known.probe;
    known.waits_to_probe = 1u << known.probe;
    return true;
}

#if defined(__GNUC__) && !defined(TOCSIN_MODEL)
// Every program that waits contains this file, and so contains the symbol that a debugger looks for.
[[gnu::used]] const void* const links_debugger_layout = &tocsin_debugger_layout;
#endif

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

spinner::spinner(const wait_key& key, const detail::wait_options& options) noexcept
    : options_(options), class_(class_of(key)), history_(histories[class_]) {
    const spin_policy policy = policy_of(options);
    const bool may_spin = platform::processors() > 1 && policy.longest().count() > 0;
    longest_ = policy.longest().count();
    burns_ = policy.which() == spin_policy::mode::fixed && may_spin;
    if (policy.which() != spin_policy::mode::adaptive) return;

    history known = read(history_);
    const bool probe = (known.spin == 0 || known.yield == 0) && count_towards_probe(known);
    looks_ = may_spin && (known.spin != 0 || probe);
    yields_left_ = known.yield != 0 || probe ? most_yields : 0;
    write(history_, known);
}

claim spinner::spin_then_sleep(waiter& self) noexcept {
    if (while_parked([&self]() noexcept { return self.is_released(); })) return self.finish();
    return self.sleep(options_);
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
    if (policy_of(options_).which() != spin_policy::mode::adaptive || !turns[class_].allows()) return false;
    yields_left_ = turn_credit::most_yields;
    return true;
}

void spinner::begin_turn() const noexcept {
    turns[class_].begin_turn(mark_of_this_thread(), static_cast<std::uint32_t>(now()));
}

void spinner::end_turn(const wait_key& semaphore) noexcept {
    turns[class_of(semaphore)].end_turn(mark_of_this_thread(), static_cast<std::uint32_t>(now()));
}

bool spinner::learn_early_yield(bool success) noexcept {
    turns[class_].learn(success, late_);
    yields_left_ = 0;
    yielded_ = false;
    if (success) count(counter::yielded);
    return success;
}

bool spinner::learn_spin(bool success) noexcept {
    history known = read(history_);
    success ? reward(known.spin) : punish(known.spin);
    if (success) known.probe = first_probe;
    write(history_, known);
    return count_spin(success);
}

bool spinner::learn_yield(bool success) noexcept {
    if (!yielded_) return false;
    history known = read(history_);
    success ? reward(known.yield) : punish(known.yield);
    if (late_) known.yield = 0;
    if (success && !late_) known.probe = first_probe;
    write(history_, known);
    if (success) count(counter::yielded);
    return success;
}

bool spinner::count_spin(bool success) noexcept {
    if (success) count(counter::spun);
    return success;
}

}  // namespace tocsin::core
