// SPDX-License-Identifier: Apache-2.0
// The questions that a wait for any or for all of a list of sources asks, in a thread or a coroutine. Can each of them
// be waited for? Which of them is ready? Which deadline comes first? Which descriptors are among them?
#pragma once

#include "core/wait/multi_wait.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

// These throw std::invalid_argument if the sources can't be waited for. The message names `function`, the public call.
void check(std::span<const source> sources, const char* function);
void check_all(std::span<const source> sources, const char* function);
// For a wait for all: refuses the same source twice. `order` is storage with one number for each source.
void check_distinct(std::span<const source> sources, std::span<std::uint32_t> order, const char* function);

// When a wait for any ends at the latest: at its own deadline, or when the first of its timers passes, whichever is
// earlier. This is judged once, by the present times of the clocks. But if one of several deadlines is on a clock of
// the user, that clock may jump. Then when() asks all of them again and again.
class latest_end {
public:
    // Refers to the sources and to `own`.
    latest_end(std::span<const source> sources, const deadline& own) noexcept;
    latest_end(const latest_end&) = delete;
    latest_end& operator=(const latest_end&) = delete;

    const deadline& when() const noexcept { return *when_; }
    // Call it after when() has passed. Returns the index of the first timer in the list that has passed, or
    // multi_wait::none if only the wait's own deadline has passed.
    std::uint32_t timer_that_passed() const noexcept;

private:
    const deadline& earliest() const noexcept;

    const std::span<const source> sources_;
    const deadline& own_;
    const deadline* when_;
    deadline all_ = deadline::never();  // if `when_` refers to it: asks all deadlines
};

// Selects timers: all, those on the system clock, or those on other clocks. A coroutine's timers of the last two kinds
// are served by two different threads (core/async/timer_thread.hpp).
enum class timers : std::uint8_t { all, of_system_clock, of_others };
std::uint32_t count_timers(std::span<const source> sources, timers of) noexcept;
// Among the timers that have not passed yet, returns the last to pass, judged by the present times of the clocks.
// Returns null if all have passed. Ignores `except`, which is known to have passed.
const deadline* last_timer(std::span<const source> sources, timers of,
                           const deadline* except = nullptr) noexcept;

// A source that is ready. For a descriptor, `found` says what it is ready for.
struct found_source {
    std::uint32_t index = multi_wait::none;
    readiness found = readiness::none;

    explicit operator bool() const noexcept { return index != multi_wait::none; }
};

// The descriptors among the sources, in the form that the poller takes. If there are none, this object does nothing.
class descriptors {
public:
    static std::size_t count(std::span<const source> sources) noexcept;

    // `storage` holds count(sources) entries, and outlives this object.
    descriptors(std::span<const source> sources, platform::poll_entry* storage) noexcept;
    descriptors(const descriptors&) = delete;
    descriptors& operator=(const descriptors&) = delete;
    ~descriptors();

    bool none() const noexcept { return all_.empty(); }
    std::span<platform::poll_entry> all() noexcept { return all_; }
    platform::doorbell_id bell() const noexcept { return bell_; }

    // Polls all descriptors, without sleeping. Throws std::system_error if that fails.
    void look();
    // Returns 0, or the error with which to call fail_without_bell(), which throws std::system_error.
    int take_bell() noexcept;
    [[noreturn]] static void fail_without_bell(int error);

    // The first descriptor that was found ready.
    found_source first() const noexcept;
    // Throws `error`, which a poll has returned. The message names the source of `culprit`, if the poller has named
    // one. Throws EBADF if the descriptor of first() is not open.
    void check(int error, std::size_t culprit) const;

    // The index of the source that has this entry of all().
    std::uint32_t source_of(std::size_t entry) const noexcept;

private:
    const std::span<const source> sources_;
    const std::span<platform::poll_entry> all_;
    platform::doorbell_id bell_ = platform::no_doorbell;
};

// Takes the source if it is ready, and returns whether it was. Never takes a descriptor, which only a poll finds ready.
bool take_if_ready(const source& from) noexcept;
// The first look of every wait: takes the first ready source, in the order of the list. Without `polled`, it passes
// over descriptors. With `polled`, it polls all descriptors at once, but only if no source in front of the first
// descriptor is ready. That poll may throw. The order may begin with another source than the first. The sources before
// that one then come last.
found_source take_first_ready(std::span<const source> sources, descriptors* polled = nullptr,
                              std::uint32_t begin = 0);
// With which source the first look of a wait begins.
std::uint32_t first_to_look_at(std::span<const source> sources, wait_order order) noexcept;

// Called by a wait that has taken this source, as its last step, in the thread or coroutine that waited. Moves a ticker
// to its next tick.
inline void note_taken(const source& taken) noexcept {
    if (taken.repeats() != nullptr) taken.repeats()->advance();
}
// The same for a wait for all, whose list may have a ticker twice.
inline void note_taken(std::span<const source> all) noexcept {
    for (const source& each : all) {
        if (each.repeats() != nullptr && each.when().has_passed()) each.repeats()->advance();
    }
}

// Gives back a source that a wait has taken, if that source can be given back. The source is then ready again.
void give_back(const source& taken) noexcept;

// The sources in front of the first descriptor.
std::span<const source> before_descriptors(std::span<const source> sources) noexcept;
// Whether a source behind the first descriptor may be ready. True if one was ready before the call. Takes nothing.
bool may_be_ready_behind_the_first_descriptor(std::span<const source> sources) noexcept;

}  // namespace tocsin::core
