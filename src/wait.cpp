// How a thread waits for several sources: what it looks at before it queues, when it wakes up, and what it returns. The
// algorithm is in core/wait/multi_wait.cpp, which also says why it is correct.
//
// A timer has no queue in the lot; it is a deadline of the wait. A wait for any sleeps until its first timer or its own
// deadline passes, and then finds out which of them has passed. A wait for all sleeps until the last of its timers has
// passed, even if a clock is set during the sleep. Then it counts the timers as ready, looks at the other sources, and
// sleeps again if one of them is not ready.
//
// Checked by: tests/unit/wait_test.cpp, tests/model/many_model_test.cpp, tests/stress/many_stress_test.cpp.
#include "core/wait/multi_wait.hpp"
#include "core/wait/sleep_polling.hpp"
#include "core/wait/source_list.hpp"
#include "core/wait/spinner.hpp"
#include "platform/poller/poller.hpp"

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
            far_ = std::make_unique<std::byte[]>(sources * each);
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
any_result timed_out(std::span<const source> sources, const deadline& first) noexcept {
    const std::uint32_t index = core::timer_that_passed(sources, first);
    return index == multi_wait::none ? any_result{wait_status::timed_out} : signaled({index});
}

// The key for which the adaptive policy learns: that of the first source.
core::wait_key learned_by(std::span<const source> sources) noexcept {
    return {sources.front().object(), core::wait_kind::event};
}

any_result ended(core::claim how) noexcept { return {core::status_from(how, wait_status::signaled)}; }

// Called when no source in front of the first descriptor is ready; if there is no descriptor, when no source is.
any_result queue_for_any(std::span<const source> sources, const wait_options& options) {
    descriptor_storage storage(core::descriptors::count(sources));
    core::descriptors polled(sources, storage.get());
    if (!polled.none()) {
        if (const core::found_source first = core::take_first_ready(sources, &polled)) return signaled(first);
    }
    if (const core::claim how = core::ended_before_wait(options); how != core::claim::open) return ended(how);

    const wait_options until_first{core::first_deadline(sources, options.until), options.stop, options.spin};
    core::found_source found;
    const auto take = [&]() noexcept {
        found = core::take_first_ready(sources);
        return static_cast<bool>(found);
    };
    core::spinner looking(learned_by(sources), until_first);
    if (looking.before_parking(take)) return signaled(found);
    if (!polled.none()) polled.take_bell();

    slot_storage slots(sources.size());
    for (;;) {
        multi_wait wait(sources, multi_wait::mode::any, slots.slots(), slots.buckets());
        core::claim how = core::claim::signaled;
        platform::poll_result ended_by;
        const auto made = wait.enlist();
        if (made == multi_wait::progress::waiting) {
            const auto poll = [&]() noexcept {
                return platform::poller::poll(polled.all(), polled.bell(), until_first.until);
            };
            const auto winner = [&]() noexcept { return polled.first().index; };
            how = polled.none()
                      ? looking.spin_then_sleep(wait.self)
                      : wait.self.stoppable(until_first, [&]() noexcept {
                            return core::sleep_polling(wait.self, polled.bell(), ended_by, poll, winner);
                        });
        }
        wait.delist();
        if (made == multi_wait::progress::retry) {
            if (take()) return signaled(found);
            continue;
        }
        if (how == core::claim::stopped) return ended(how);
        if (ended_by.error != 0) polled.check(ended_by.error, ended_by.culprit);
        if (how == core::claim::timed_out) return timed_out(sources, until_first.until);
        const std::uint32_t index = wait.self.winner();
        if (sources[index].what() != source::kind::descriptor) return {wait_status::signaled, index};
        polled.check(0, platform::no_culprit);
        return signaled(polled.first());
    }
}

}  // namespace

namespace detail {

any_result wait_any_slow(std::span<const source> sources, const limits& how) {
    core::check(sources, "wait_any");
    if (const auto first = core::take_first_ready(core::before_descriptors(sources))) return signaled(first);
    return queue_for_any(sources, options_of(how));
}

wait_status wait_all_slow(std::span<const source> sources, const limits& how) {
    const wait_options options = options_of(how);
    core::check_all(sources, "wait_all");
    slot_storage slots(sources.size());
    core::check_distinct(sources, slots.order(), "wait_all");
    const std::uint32_t timers = core::count_timers(sources, core::timers::all);
    const deadline* last = core::last_timer(sources, core::timers::all);
    multi_wait wait(sources, multi_wait::mode::all, slots.slots(), slots.buckets());
    if (last == nullptr) wait.add_ready_timers(timers);
    if (wait.commit_own()) return wait_status::signaled;
    // A custom source says only when it is enlisted whether it is ready.
    if (std::ranges::count(sources, source::kind::custom, &source::what) == 0) {
        if (const auto over = core::ended_before_wait(options); over != core::claim::open)
            return core::status_from(over, wait_status::signaled);
    }
    core::claim claimed = core::claim::signaled;
    if (wait.enlist() == multi_wait::progress::waiting) {
        claimed = wait.self.stoppable(options, [&]() noexcept {
            while (last != nullptr && last->remaining() < options.until.remaining() &&
                   !wait.self.sleep_until_released(*last)) {
                // This finds another timer if a clock has been set.
                last = core::last_timer(sources, core::timers::all, last);
                if (last != nullptr) continue;
                wait.add_ready_timers(timers);
                if (wait.commit_own()) return core::claim::signaled;
            }
            return wait.self.sleep(options.until);
        });
    }
    wait.delist();
    return core::status_from(claimed, wait_status::signaled);
}

}  // namespace detail
}  // namespace tocsin
