// SPDX-License-Identifier: Apache-2.0
// How a thread waits for several sources: what it looks at before it queues, when it wakes up, and what it returns. The
// algorithm is in core/wait/multi_wait.cpp, which also says why it is correct.
//
// A timer has no queue in the lot; it is a deadline of the wait.
// - A wait for any sleeps until its first timer or its own deadline passes, and then finds out which of them has
//   passed.
// - A wait for all sleeps until its last timer or its own deadline passes. A clock may have been set during the sleep,
//   so that another timer is now the last. The wait then sleeps until that timer passes. When the last timer has
//   passed, the wait counts the timers as ready and looks at the other sources. It sleeps again if one of them is not
//   ready.
//
// Descriptors: the cost of a poll grows with the number of descriptors. So a wait for any usually makes a single poll,
// in which it sleeps. That poll also finds what was ready at the start. Only in these cases does the wait first make a
// poll that does not sleep:
//   wait-1  A descriptor and a source behind it (after it in the list) may both be ready at the start. The wait must
//       then report the descriptor. To find out, the wait peeks at the sources behind its first descriptor, and polls
//       first if one of them may be ready. The peek misses no source that was ready before the call. A custom source
//       can't be peeked at, so it counts as ready.
//   wait-2  The wait is over before it begins: what is ready must be reported all the same. (For the same reason, if a
//       stop ends a wait in its sleep, the wait polls once more afterwards, unless its last poll found all descriptors
//       idle.)
//   wait-3  The wait is about to spin, which may end it without a poll.
//   wait-4  The thread can't get a doorbell: what is ready must be reported all the same.
//   wait-5  The thread's previous wait for any with descriptors may have passed over a ready descriptor: it took a
//       source behind a descriptor, and its last poll had not found all descriptors idle. This happens if an event is
//       set while the thread is queued and the first poll has not ended. The event has then been handed over, and can't
//       be given back unnoticed. So the wait takes the event, and leaves the thread a mark. The thread's next such wait
//       sees the mark and polls first, unless a source in front of its descriptors ends it. If a descriptor stays
//       ready, one of two waits in a row reports it or a source in front of it.
//
// A source in front of all descriptors needs none of this. If it becomes ready before the poll has ended, the result is
// the same as if it had been ready at the start.
//
// If another thread has taken the custom source that ended a wait, the wait begins again. It then looks at all sources,
// and polls its descriptors, before it is queued again.
//
// Checked by: tests/unit/wait_test.cpp, tests/unit/fd_test.cpp, tests/model/many_model_test.cpp (polling_model: wait-1,
// 2, 5), tests/stress/many_stress_test.cpp.
#include "core/lot/relay.hpp"
#include "core/sync/happens_before.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/source_list.hpp"
#include "core/wait/spinner.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/lock_reference.hpp>
#include <tocsin/wait.hpp>

#include <algorithm>
#include <memory>
#include <new>

namespace tocsin {
namespace {

using core::multi_wait;
using detail::wait_options;

// What a wait keeps for each source: on the stack for a few sources, in one block of allocated memory for more.
class slot_storage {
public:
    explicit slot_storage(std::size_t sources) : count_(sources) {
        constexpr std::size_t each = sizeof(core::wait_slot) + sizeof(std::uint32_t) + sizeof(std::uint16_t);
        std::byte* begin = near_;
        if (sources > near) {
            far_ = std::make_unique_for_overwrite<std::byte[]>(sources * each);
            begin = far_.get();
        }
        slots_ = new (begin) core::wait_slot[sources];
        begin += sources * sizeof(core::wait_slot);
        order_ = new (begin) std::uint32_t[sources];
        begin += sources * sizeof(std::uint32_t);
        buckets_ = new (begin) std::uint16_t[sources];
    }
    slot_storage(const slot_storage&) = delete;
    slot_storage& operator=(const slot_storage&) = delete;
    ~slot_storage() { std::destroy_n(slots_, count_); }

    core::wait_slot* slots() noexcept { return slots_; }
    std::span<std::uint32_t> order() noexcept { return {order_, count_}; }
    std::uint16_t* buckets() noexcept { return buckets_; }

private:
    static constexpr std::size_t near = 16;  // about 2 KB of stack
    static_assert(alignof(core::wait_slot) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

    const std::size_t count_;
    std::unique_ptr<std::byte[]> far_;
    core::wait_slot* slots_;
    std::uint32_t* order_;
    std::uint16_t* buckets_;
    alignas(core::wait_slot)
        std::byte near_[near * (sizeof(core::wait_slot) + sizeof(std::uint32_t) + sizeof(std::uint16_t))];
};

// The descriptors of a wait, stored in the same way.
class descriptor_storage {
public:
    explicit descriptor_storage(std::size_t count) {
        if (count > near) far_ = std::make_unique<platform::poll_entry[]>(count);
    }

    platform::poll_entry* get() noexcept { return far_ ? far_.get() : near_; }

private:
    static constexpr std::size_t near = 16;

    platform::poll_entry near_[near];
    std::unique_ptr<platform::poll_entry[]> far_;
};

any_result signaled(const core::found_source& by) noexcept {
    return {wait_status::signaled, by.index, by.found};
}

// Called when the first deadline has passed: the wait's own, or a timer's. Others may have passed, too.
any_result timed_out(const core::latest_end& first) noexcept {
    const std::uint32_t index = first.timer_that_passed();
    return index == multi_wait::none ? any_result{wait_status::timed_out} : signaled({index});
}

// The key for which the adaptive policy learns: that of the first source.
core::wait_key learned_by(std::span<const source> sources) noexcept {
    const source& first = sources.front();
    const bool is_single_use =
        first.what() == source::kind::lot && first.lot().use == detail::event_use::latch;
    return core::learned_for({first.object(), core::wait_kind::event},
                             is_single_use ? detail::event_use::latch : detail::event_use::event);
}

// Whether a wait may look at the source before it is queued. Two threads that meet at a channel would both look, and
// neither would be there to be found. But what can be given back stays with the object until a look takes it.
bool may_be_looked_at(const source& one) noexcept {
    return one.what() != source::kind::custom || one.custom().give_back != nullptr;
}

any_result ended(core::claim how) noexcept { return {core::status_from(how, wait_status::signaled)}; }

// When a wait for any looks at its descriptors, and how it sleeps until one of them is ready.
class descriptor_looks final : public core::poll_sleep {
public:
    explicit descriptor_looks(std::span<const source> sources)
        : sources_(sources), storage_(core::descriptors::count(sources)), polled_(sources, storage_.get()) {}

    bool none() const noexcept { return polled_.none(); }

    // Whether the wait must look at its descriptors before it is queued.
    bool are_due() const noexcept {
        if (none()) return false;
        const bool passed_over = platform::exchange_look_due(false);                     // wait-5
        return passed_over || core::may_be_ready_behind_the_first_descriptor(sources_);  // wait-1
    }

    // Takes the first source that is ready. Does nothing if there are no descriptors, or if this wait has found them
    // idle already.
    core::found_source look() { return none() || idle_ ? core::found_source{} : look_again(); }
    core::found_source look_again() {
        const core::found_source first = core::take_first_ready(sources_, &polled_);
        idle_ = !first;
        return first;
    }

    // What was ready when a stop ended the wait.
    core::found_source look_after_stop() {
        if (none() || idle_) return {};
        polled_.look();
        return polled_.first();
    }

    // Called before the thread is queued. Returns what is ready if the wait can't sleep.
    core::found_source prepare_to_sleep() {
        if (none()) return {};
        const int error = polled_.take_bell();
        if (error == 0) return {};
        if (const core::found_source first = look()) return first;  // wait-4
        polled_.fail_without_bell(error);
    }

    std::span<const platform::poll_entry> polled() noexcept { return polled_.all(); }

    // The result of a wait that was claimed for this source.
    any_result taken(std::uint32_t index) const {
        if (none()) return {wait_status::signaled, index};
        if (sources_[index].what() == source::kind::descriptor) {
            polled_.check(0, platform::no_culprit);
            return signaled(polled_.first());
        }
        const bool is_behind = index >= core::before_descriptors(sources_).size();
        if (is_behind && !idle_) (void)platform::exchange_look_due(true);  // wait-5
        return {wait_status::signaled, index};
    }

    // Throws the error with which the poll of a sleep has failed.
    void check() const {
        if (found().error != 0) polled_.check(found().error, found().culprit);
    }

private:
    platform::doorbell_id bell() const noexcept override { return polled_.bell(); }
    platform::poll_result poll(const deadline& until) noexcept override {
        const auto result = platform::poller::poll(polled_.all(), polled_.bell(), until);
        idle_ = result.ready == 0 && result.error == 0;
        return result;
    }
    std::uint32_t ready_source() const noexcept override { return polled_.first().index; }

    const std::span<const source> sources_;
    descriptor_storage storage_;
    core::descriptors polled_;
    bool idle_ = false;  // no descriptor was ready when this wait looked last
};

// Queues the thread, and sleeps until a source is ready. `until_first` ends with `first`: at the deadline of the wait
// or, if that is earlier, with the first timer.
any_result sleep_for_any(std::span<const source> sources, const core::latest_end& first,
                         const wait_options& until_first, descriptor_looks& looks, core::spinner& looking,
                         detail::lock_reference* lock) {
    slot_storage slots(sources.size());
    for (;;) {
        multi_wait wait(sources, multi_wait::mode::any, slots.slots(), slots.buckets());
        core::claim how = core::claim::signaled;
        const auto made = wait.enlist();
        if (made == multi_wait::progress::waiting) {
            if (lock != nullptr) lock->give_up();
            const auto poll = [&]() noexcept {
                const core::diagnosed_here shown(looks.polled(), wait.self, core::wait_origin::here());
                return looks.sleep(wait.self, until_first);
            };
            how = looks.none() ? looking.spin_then_sleep(wait.self) : poll();
        }
        wait.delist();
        if (made == multi_wait::progress::done) looking.end_early();
        if (made == multi_wait::progress::retry) {
            if (const auto found = looks.look_again()) return signaled(found);
            continue;
        }
        if (how == core::claim::stopped) {
            const auto found = looks.look_after_stop();  // wait-2
            return found ? signaled(found) : ended(how);
        }
        looks.check();
        if (how == core::claim::timed_out) return timed_out(first);
        return looks.taken(wait.self.winner());
    }
}

// Called when no source in front of the first descriptor is ready. If there is no descriptor, it is called when no
// source is ready.
any_result queue_for_any(std::span<const source> sources, const wait_options& options,
                         detail::lock_reference* lock) {
    descriptor_looks looks(sources);
    const core::claim over = core::ended_before_wait(options);
    if (over != core::claim::open || looks.are_due()) {  // wait-2
        if (const auto found = looks.look()) return signaled(found);
    }
    if (over != core::claim::open) return ended(over);

    const core::latest_end first(sources, options.until);
    const wait_options until_first{first.when(), options.stop, options.spin};
    core::spinner looking(learned_by(sources), until_first);
    // A thread that holds its caller's lock does not spin before it has given up the lock.
    const bool may_look = lock == nullptr && std::ranges::all_of(sources, may_be_looked_at);
    // To queue at a custom source may take system calls, so the only look comes before that.
    const bool looks_once =
        !looks.none() || std::ranges::count(sources, source::kind::custom, &source::what) != 0;
    if (may_look && looking.looks_before_parking()) {  // wait-3
        if (const auto found = looks.look()) return signaled(found);
    }
    core::found_source found;
    const auto take = [&]() noexcept {
        found = core::take_first_ready(sources);
        return static_cast<bool>(found);
    };
    if (may_look && looking.before_parking(take, looks_once)) return signaled(found);
    if (const auto ready = looks.prepare_to_sleep()) return signaled(ready);
    return sleep_for_any(sources, first, until_first, looks, looking, lock);
}

// In the order of the list, queue_for_any() polls the descriptors if that is due (wait-1 to wait-5). In a fair order, a
// descriptor may come before a source that is ready, so they are polled at once.
core::found_source first_look(std::span<const source> sources, wait_order order) {
    if (order == wait_order::listed) return core::take_first_ready(core::before_descriptors(sources));
    descriptor_storage storage(core::descriptors::count(sources));
    core::descriptors polled(sources, storage.get());
    const core::found_source first =
        core::take_first_ready(sources, &polled, core::first_to_look_at(sources, order));
    if (first && sources[first.index].what() == source::kind::descriptor)
        polled.check(0, platform::no_culprit);
    return first;
}

// For a queued wait for all whose timer `last` has not passed. Sleeps until the wait ends.
core::claim sleep_past_timers(multi_wait& wait, std::span<const source> sources, const deadline& until,
                              const deadline& first_last) noexcept {
    for (const deadline* last = &first_last; last != nullptr;) {
        const source timer(*last);
        const core::latest_end first({&timer, 1}, until);
        if (wait.self.sleep_until_released(first.when())) break;
        if (first.timer_that_passed() == multi_wait::none) break;  // the wait's own deadline has passed
        // This finds another timer if a clock has been set.
        last = core::last_timer(sources, core::timers::all, last);
        if (last != nullptr) continue;
        wait.add_ready_timers(core::count_timers(sources, core::timers::all));
        if (wait.commit_own()) return core::claim::signaled;
    }
    return core::sleep(wait.self, until);
}

wait_status sleep_for_all(std::span<const source> sources, const limits& how) {
    const wait_options options = detail::options_of(how);
    core::check_all(sources, "wait_all");
    slot_storage slots(sources.size());
    core::check_distinct(sources, slots.order(), "wait_all");
    if (detail::is_stopped_first(how)) return wait_status::stopped;
    const std::uint32_t timers = core::count_timers(sources, core::timers::all);
    const deadline* last = core::last_timer(sources, core::timers::all);
    multi_wait wait(sources, multi_wait::mode::all, slots.slots(), slots.buckets());
    if (last == nullptr) wait.add_ready_timers(timers);
    if (wait.commit_own()) return wait_status::signaled;
    // A custom source does not say whether it is ready until it is enlisted.
    const bool asks_all = std::ranges::count(sources, source::kind::custom, &source::what) == 0;
    if (asks_all) {
        if (const auto over = core::ended_before_wait(options); over != core::claim::open)
            return core::status_from(over, wait_status::signaled);
    }
    core::spinner looking(learned_by(sources), options);
    const auto commit = [&]() noexcept { return wait.commit_own(); };
    // While a timer is ahead, no look can end the wait.
    if (asks_all && last == nullptr && looking.before_parking(commit)) return wait_status::signaled;
    core::claim claimed = core::claim::signaled;
    if (wait.enlist() != multi_wait::progress::waiting) {
        looking.end_early();
    } else {
        claimed = last == nullptr ? looking.spin_then_sleep(wait.self)
                                  : wait.self.stoppable(options, [&]() noexcept {
                                        return sleep_past_timers(wait, sources, options.until, *last);
                                    });
    }
    wait.delist();
    return core::status_from(claimed, wait_status::signaled);
}

}  // namespace

namespace detail {

any_result wait_any_slow(std::span<const source> sources, const limits& how, lock_reference* lock) {
    core::check(sources, "wait_any");
    if (is_stopped_first(how)) return {wait_status::stopped};
    const auto first = first_look(sources, how.order);
    const any_result ended = first ? signaled(first) : queue_for_any(sources, options_of(how), lock);
    if (ended.status == wait_status::signaled) {
        core::order::after(sources[ended.index].object());
        core::note_taken(sources[ended.index]);
    }
    return ended;
}

wait_status wait_all_slow(std::span<const source> sources, const limits& how) {
    const wait_status ended = sleep_for_all(sources, how);
    if (ended == wait_status::signaled) {
        for (const source& each : sources) core::order::after(each.object());
        core::note_taken(sources);
    }
    return ended;
}

}  // namespace detail
}  // namespace tocsin
