// What every wait for several sources asks about them, whether a thread waits or a coroutine: can they be waited for,
// which is ready, which deadline is the first, which descriptors are among them.
#pragma once

#include "core/wait/multi_wait.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

// These throw std::invalid_argument if the sources can't be waited for. The message names `function`, which was called.
void check(std::span<const source> sources, const char* function);
void check_all(std::span<const source> sources, const char* function);
// For a wait for all; `order` is storage for one number for each source.
void check_distinct(std::span<const source> sources, std::span<std::uint32_t> order, const char* function);

// The first of the timers and of the wait's own deadline.
const deadline& first_deadline(std::span<const source> sources, const deadline& own) noexcept;
// Which timers: all; those on the system clock; those on other clocks. Each of the last two kinds has a thread that
// serves it for coroutines (core/async/timer_thread.hpp).
enum class timers : std::uint8_t { all, of_system_clock, of_others };
std::uint32_t count_timers(std::span<const source> sources, timers of) noexcept;
// Of the timers that have not passed yet, the last to pass, as the clocks are now; null if all have passed. Leaves out
// `except`, which is known to have passed.
const deadline* last_timer(std::span<const source> sources, timers of,
                           const deadline* except = nullptr) noexcept;
// `first` has passed: which of the timers it is, or multi_wait::none if it is the wait's own deadline.
std::uint32_t timer_that_passed(std::span<const source> sources, const deadline& first) noexcept;

// A source that is ready; for a descriptor, also what was found.
struct found_source {
    std::uint32_t index = multi_wait::none;
    readiness found = readiness::none;

    explicit operator bool() const noexcept { return index != multi_wait::none; }
};

// The descriptors among the sources, as the poller takes them. Does nothing if there are none.
class descriptors {
public:
    static std::size_t count(std::span<const source> sources) noexcept;

    // `storage` holds count(sources) entries, and outlives this.
    descriptors(std::span<const source> sources, platform::poll_entry* storage) noexcept;
    descriptors(const descriptors&) = delete;
    descriptors& operator=(const descriptors&) = delete;
    ~descriptors();

    bool none() const noexcept { return all_.empty(); }
    std::span<platform::poll_entry> all() noexcept { return all_; }
    platform::doorbell_id bell() const noexcept { return bell_; }

    // Both throw std::system_error when they fail.
    void look();  // at all of them, without sleeping
    void take_bell();

    // The first that was found ready.
    found_source first() const noexcept;
    // Throws the error of a poll (with the source it names, if any), or EBADF if a poll found one that is not open.
    void check(int error, std::size_t culprit) const;

private:
    std::uint32_t source_of(std::size_t entry) const noexcept;

    const std::span<const source> sources_;
    const std::span<platform::poll_entry> all_;
    platform::doorbell_id bell_ = platform::no_doorbell;
};

// The first look of every wait: takes the first source that is ready, in their order. Descriptors are passed over
// without `polled`; with it all of them are polled at once, and only if nothing before them is ready. That poll may
// throw.
found_source take_first_ready(std::span<const source> sources, descriptors* polled = nullptr);

// The sources in front of the first descriptor.
std::span<const source> before_descriptors(std::span<const source> sources) noexcept;

}  // namespace tocsin::core
