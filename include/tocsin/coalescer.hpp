// Waking a consumer at most once an interval, whatever the rate of signals.
//
//     tocsin::auto_reset_event dirty;                       // producers: dirty.set()
//     tocsin::coalescer frames(16ms);
//     while (frames.wait_any(dirty, shutdown).index == 0) redraw();
//
// Between the end of one wait and an interval after it the consumer is either at work or asleep for the rest of the
// interval; signals then only leave their events set, without a system call and without a wake-up. What has been
// signaled is found when the interval is over: nothing is lost, and nothing waits longer than an interval.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/source.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <span>

namespace tocsin {

// Belongs to one consumer: not to be used by two threads at a time. Owns nothing.
class coalescer {
public:
    // Zero or less: no pause. Rounded up to a nanosecond.
    template <class Rep, class Period>
    explicit coalescer(std::chrono::duration<Rep, Period> interval) noexcept
        : interval_(std::chrono::ceil<std::chrono::nanoseconds>(interval)) {}

    // As wait_any() (wait.hpp), once the interval since the last release is over. The pause ends early for a stop and
    // for the deadline: then nothing has been taken, also if something was ready; the next wait finds it.
    // Errors as wait_any(), but after the pause.
    any_result wait_any(std::span<const source> sources) {
        return wait({deadline::never(), nullptr, {}}, sources);
    }
    [[nodiscard]] any_result wait_any(const detail::stop_token& stop, std::span<const source> sources) {
        return wait({deadline::never(), &stop, {}}, sources);
    }
    [[nodiscard]] any_result wait_any_until(const deadline& until, std::span<const source> sources) {
        return wait({until, nullptr, {}}, sources);
    }
    [[nodiscard]] any_result wait_any_until(const deadline& until, const detail::stop_token& stop,
                                            std::span<const source> sources) {
        return wait({until, &stop, {}}, sources);
    }
    template <class... Sources>
        requires detail::sources<Sources...>
    any_result wait_any(Sources&&... from) {
        return wait_any(detail::list_of(from...));
    }
    template <class... Sources>
        requires detail::sources<Sources...>
    [[nodiscard]] any_result wait_any(const detail::stop_token& stop, Sources&&... from) {
        return wait_any(stop, detail::list_of(from...));
    }
    template <class... Sources>
        requires detail::sources<Sources...>
    [[nodiscard]] any_result wait_any_until(const deadline& until, Sources&&... from) {
        return wait_any_until(until, detail::list_of(from...));
    }

private:
    TOCSIN_API any_result wait(const detail::wait_options& options, std::span<const source> sources);

    std::chrono::nanoseconds interval_;
    deadline next_ = std::chrono::nanoseconds(0);  // when the pause is over
};

}  // namespace tocsin
