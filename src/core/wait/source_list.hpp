// What every wait for several sources asks of them, whether a thread waits or a coroutine: are they possible, which
// is ready, which time comes first, which descriptors are among them.
#pragma once

#include "core/wait/multi_wait.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

// Throw std::invalid_argument when they can't be waited for; `who` is named.
void check(std::span<const source> sources, const char* who);
void check_all(std::span<const source> sources, const char* who);
// For all of them; `order` has room for as many as there are.
void check_distinct(std::span<const source> sources, std::span<std::uint32_t> order, const char* who);

// The first of the timers and of the wait's own deadline.
const deadline& first_deadline(std::span<const source> sources, const deadline& own) noexcept;
// Which timers: all; those of the system clock; or those of other clocks. Of the last two kinds each has a thread that
// serves it for coroutines (core/async/timer_thread.hpp).
enum class timers : std::uint8_t { all, of_system_clock, of_others };
std::uint32_t count_timers(std::span<const source> sources, timers of) noexcept;
// Of those that have not come yet the one that is to come last, as the clocks stand; null: all have come. One that is
// known to have come may be left out.
const deadline* last_timer(std::span<const source> sources, timers of,
                           const deadline* but = nullptr) noexcept;
// `first` has come: which of the timers, or multi_wait::none if it was the wait's own deadline.
std::uint32_t timer_that_came(std::span<const source> sources, const deadline& first) noexcept;

// A source that is ready; of a descriptor also what was found.
struct found_source {
    std::uint32_t index = multi_wait::none;
    readiness found = readiness::none;

    explicit operator bool() const noexcept { return index != multi_wait::none; }
};

// The descriptors among the sources, as the poller wants them. Without any it does nothing.
class descriptors {
public:
    static std::size_t count(std::span<const source> sources) noexcept;

    // `room` has place for as many as there are, and outlives it.
    descriptors(std::span<const source> sources, platform::poll_entry* room) noexcept;
    descriptors(const descriptors&) = delete;
    descriptors& operator=(const descriptors&) = delete;
    ~descriptors();

    bool none() const noexcept { return all_.empty(); }
    std::span<platform::poll_entry> all() noexcept { return all_; }
    platform::doorbell_id bell() const noexcept { return bell_; }

    // Both throw std::system_error if they can't.
    void look();  // at all, without sleeping
    void take_bell();

    // The first that was found ready.
    found_source first() const noexcept;
    // Throws what a poll complained of (and whose, if it knows), or found to be no open descriptor.
    void check(int error, std::size_t culprit) const;

private:
    std::uint32_t source_of(std::size_t place) const noexcept;

    const std::span<const source> sources_;
    const std::span<platform::poll_entry> all_;
    platform::doorbell_id bell_ = platform::no_doorbell;
};

// Takes the first that is ready, in the order of the sources. Descriptors are looked at all at once, and only if
// nothing before them is ready.
found_source take_first_ready(std::span<const source> sources, descriptors& polled);

}  // namespace tocsin::core
