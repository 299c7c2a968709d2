// Threads that wait for several sources: what they look at before they queue, when they wake, what they say. The
// algorithm, and the argument for it, is in core/wait/multi_wait.cpp.
//
// Timers are no sources in the lot but deadlines of the wait. A wait for any sleeps until the first of them (or its
// own deadline) and then sees whose it was; a wait for all sleeps until the last of them, as the clocks stand then,
// counts them as ready, looks at the others and sleeps on.
//
// Checked by: tests/unit/wait_test.cpp, tests/model/many_model_test.cpp, tests/stress/many_stress_test.cpp.
#include "core/wait/multi_wait.hpp"
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

// Room for what a wait keeps of each source: on the stack for a few, one block of memory for more.
class room {
public:
    explicit room(std::size_t sources) : count_(sources) {
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
    room(const room&) = delete;
    room& operator=(const room&) = delete;
    ~room() { std::destroy_n(slots_, count_); }

    core::wait_slot* slots() noexcept { return slots_; }
    std::span<std::uint32_t> order() noexcept { return {order_, count_}; }
    std::uint16_t* buckets() noexcept { return buckets_; }

private:
    static constexpr std::size_t near = 16;  // some 2 KB of stack
    static_assert(alignof(core::wait_slot) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

    const std::size_t count_;
    std::unique_ptr<std::byte[]> far_;
    core::wait_slot* slots_;
    std::uint32_t* order_;
    std::uint16_t* buckets_;
    alignas(core::wait_slot)
        std::byte near_[near * (sizeof(core::wait_slot) + sizeof(std::uint32_t) + sizeof(std::uint16_t))];
};

// Room for the descriptors of a wait, in the same way.
class polling_room {
public:
    explicit polling_room(std::size_t count) {
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

// `first` has come: the wait's own deadline, or that of a timer (and perhaps of others).
any_result late(std::span<const source> sources, const deadline& first) noexcept {
    const std::uint32_t index = core::timer_that_came(sources, first);
    return index == multi_wait::none ? any_result{wait_status::timed_out} : signaled({index});
}

// For what a wait looks at before it queues: the adaptive policy learns by the first source.
core::wait_key where_learned(std::span<const source> sources) noexcept {
    return {sources.front().object(), core::wait_kind::event};
}

// Sleeps until released, or until a descriptor is ready and nobody has claimed the wait for something else.
core::claim sleep_polling(core::waiter& self, core::descriptors& polled, const deadline& until,
                          platform::poll_result& ended_by) noexcept {
    platform::poll_result found;
    const auto look = [&]() noexcept {
        found = platform::poll(polled.all(), polled.bell(), until);
        return found.ended();
    };
    if (self.poll_until_released(polled.bell(), look)) return self.finish();
    const bool ready = found.ready != 0;
    const core::claim reason = ready ? core::claim::signaled : core::claim::timed_out;
    if (self.try_claim(reason, ready ? polled.first().index : 0)) {
        ended_by = found;
        return reason;
    }
    self.sleep_until_released(deadline::never());
    return self.finish();
}

// Nothing is ready up to the first descriptor, if there is one.
any_result wait_any_rest(std::span<const source> sources, const wait_options& options) {
    polling_room polling(core::descriptors::count(sources));
    core::descriptors polled(sources, polling.get());
    if (!polled.none()) {
        if (const core::found_source first = core::take_first_ready(sources, polled)) return signaled(first);
    }
    if (options.stop != nullptr && options.stop->stop_requested()) return {wait_status::stopped};
    if (options.until.has_passed()) return {wait_status::timed_out};

    const wait_options limits{core::first_deadline(sources, options.until), options.stop, options.spin};
    std::uint32_t index = multi_wait::none;
    const auto take = [&]() noexcept {
        return (index = multi_wait::take_first_ready(sources)) != multi_wait::none;
    };
    core::spinner looking(where_learned(sources), limits);
    if (looking.before_parking(take)) return {wait_status::signaled, index};
    if (!polled.none()) polled.take_bell();

    room places(sources.size());
    for (;;) {
        multi_wait wait(sources, multi_wait::mode::any, places.slots(), places.buckets());
        core::claim how = core::claim::signaled;
        platform::poll_result ended_by;
        const auto made = wait.enlist();
        if (made == multi_wait::progress::waiting) {
            how = polled.none() ? looking.spin_then_sleep(wait.self)
                                : wait.self.stoppable(limits, [&]() noexcept {
                                      return sleep_polling(wait.self, polled, limits.until, ended_by);
                                  });
        }
        wait.delist();
        if (made == multi_wait::progress::retry) {
            if (take()) return {wait_status::signaled, index};
            continue;
        }
        if (how == core::claim::stopped) return {wait_status::stopped};
        if (ended_by.error != 0) polled.check(ended_by.error, ended_by.culprit);
        if (how == core::claim::timed_out) return late(sources, limits.until);
        index = wait.self.winner();
        if (sources[index].what() != source::kind::descriptor) return {wait_status::signaled, index};
        polled.check(0, platform::no_culprit);
        return signaled(polled.first());
    }
}

}  // namespace

namespace detail {

any_result wait_any_slow(std::span<const source> sources, const limits& how) {
    core::check(sources, "wait_any");
    for (std::size_t i = 0; i != sources.size() && sources[i].what() != source::kind::descriptor; ++i) {
        if (multi_wait::take_if_ready(sources[i])) return {wait_status::signaled, i};
    }
    return wait_any_rest(sources, options_of(how));
}

wait_status wait_all_slow(std::span<const source> sources, const limits& how) {
    const wait_options options = options_of(how);
    core::check_all(sources, "wait_all");
    room places(sources.size());
    core::check_distinct(sources, places.order(), "wait_all");
    const std::uint32_t timers = core::count_timers(sources, core::timers::all);
    const deadline* last = core::last_timer(sources, core::timers::all);
    multi_wait wait(sources, multi_wait::mode::all, places.slots(), places.buckets());
    if (last == nullptr) wait.add_ready_timers(timers);
    if (wait.commit_own()) return wait_status::signaled;
    // A source of the user's says only when it is enlisted whether it is ready.
    if (std::ranges::count(sources, source::kind::custom, &source::what) == 0) {
        if (options.stop != nullptr && options.stop->stop_requested()) return wait_status::stopped;
        if (options.until.has_passed()) return wait_status::timed_out;
    }
    core::claim ended = core::claim::signaled;
    if (wait.enlist() == multi_wait::progress::waiting) {
        ended = wait.self.stoppable(options, [&]() noexcept {
            while (last != nullptr && last->remaining() < options.until.remaining() &&
                   !wait.self.sleep_until_released(*last)) {
                last =
                    core::last_timer(sources, core::timers::all, last);  // another, if a clock has been set
                if (last != nullptr) continue;
                wait.add_ready_timers(timers);
                if (wait.commit_own()) return core::claim::signaled;
            }
            return wait.self.sleep(options.until);
        });
    }
    wait.delist();
    switch (ended) {
        case core::claim::stopped: return wait_status::stopped;
        case core::claim::timed_out: return wait_status::timed_out;
        default: return wait_status::signaled;
    }
}

}  // namespace detail
}  // namespace tocsin
