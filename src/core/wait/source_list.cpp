// SPDX-License-Identifier: Apache-2.0
// Nothing here is concurrent. source_list.hpp says what each function does.
//
// Checked by: tests/unit/wait_test.cpp, fd_test.cpp and publication_test.cpp, tests/model/first_look_model_test.cpp.
#include "core/wait/source_list.hpp"

#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

namespace tocsin::core {
namespace {

[[noreturn]] void refuse(const char* function, const char* message) {
    char text[128];
    std::snprintf(text, sizeof text, "tocsin::%s: %s", function, message);
    detail::throw_or_die(std::invalid_argument(text));
}

[[noreturn]] void refuse(const char* function, std::size_t index, const char* message) {
    char text[96];
    std::snprintf(text, sizeof text, "source %zu %s", index, message);
    refuse(function, text);
}

bool is_timer(const source& one, timers of) noexcept {
    if (one.what() != source::kind::timer) return false;
    const bool on_system_clock = one.when().which() == deadline::clock::system;
    return of == timers::all || on_system_clock == (of == timers::of_system_clock);
}

}  // namespace

void check(std::span<const source> sources, const char* function) {
    if (sources.empty()) refuse(function, "no sources");
    if (sources.size() > wait_node::max_index) refuse(function, "too many sources");
    for (std::size_t i = 0; i != sources.size(); ++i) {
        if (sources[i].empty()) refuse(function, i, "is empty");
    }
}

// Refuses sources that may no longer be ready when the last of them becomes ready.
void check_all(std::span<const source> sources, const char* function) {
    check(sources, function);
    for (std::size_t i = 0; i != sources.size(); ++i) {
        const source& each = sources[i];
        if (each.what() == source::kind::descriptor) refuse(function, i, "is a descriptor");
        if (each.what() == source::kind::custom && !each.custom().stays_ready) {
            refuse(function, i, "can be taken away once it is ready (stays_ready)");
        }
    }
}

// Refuses the same source twice.
void check_distinct(std::span<const source> sources, std::span<std::uint32_t> order, const char* function) {
    const auto identity = [&](std::uint32_t i) {
        const bool is_timer = sources[i].what() == source::kind::timer;  // equal timers are allowed
        const auto object = reinterpret_cast<std::uintptr_t>(sources[i].object());
        return std::tuple(object, sources[i].what(), is_timer ? i : 0);
    };
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(identity(i), i); });
    const auto same = std::ranges::adjacent_find(order, {}, identity);
    if (same == order.end()) return;
    char text[96];
    std::snprintf(text, sizeof text, "sources %u and %u are the same", same[0], same[1]);
    refuse(function, text);
}

latest_end::latest_end(std::span<const source> sources, const deadline& own) noexcept
    : sources_(sources), own_(own), when_(&own) {
    int deadlines = 0;
    bool may_jump = false;
    const auto count = [&](const deadline& one) {
        if (!one.is_never()) ++deadlines;
        if (one.which() == deadline::clock::other) may_jump = true;
    };
    count(own);
    for (const source& each : sources) {
        if (each.what() == source::kind::timer) count(each.when());
    }
    if (may_jump && deadlines > 1) {
        all_ = deadline(this, [](const void* of) noexcept {
            return static_cast<const latest_end*>(of)->earliest().remaining();
        });
        when_ = &all_;
    } else {
        when_ = &earliest();
    }
}

const deadline& latest_end::earliest() const noexcept {
    const deadline* first = &own_;
    std::int64_t left = own_.remaining();
    for (const source& each : sources_) {
        if (each.what() != source::kind::timer) continue;
        const std::int64_t remaining = each.when().remaining();
        if (remaining >= left) continue;
        left = remaining;
        first = &each.when();
    }
    return *first;
}

std::uint32_t latest_end::timer_that_passed() const noexcept {
    // If a clock has been set back since, none may have passed. Then the earliest counts.
    const deadline& first = when_ == &all_ ? earliest() : *when_;
    for (std::uint32_t i = 0; i != sources_.size(); ++i) {
        if (sources_[i].what() != source::kind::timer) continue;
        if (&sources_[i].when() == &first || sources_[i].when().has_passed()) return i;
    }
    return multi_wait::none;
}

std::uint32_t count_timers(std::span<const source> sources, timers of) noexcept {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(sources, [&](const source& each) { return is_timer(each, of); }));
}

const deadline* last_timer(std::span<const source> sources, timers of, const deadline* except) noexcept {
    const deadline* last = nullptr;
    std::int64_t longest = 0;
    for (const source& each : sources) {
        if (!is_timer(each, of) || &each.when() == except) continue;
        const std::int64_t remaining = each.when().remaining();
        if (remaining <= longest) continue;
        longest = remaining;
        last = &each.when();
    }
    return last;
}

std::size_t descriptors::count(std::span<const source> sources) noexcept {
    return static_cast<std::size_t>(std::ranges::count(sources, source::kind::descriptor,
                                                       [](const source& each) { return each.what(); }));
}

descriptors::descriptors(std::span<const source> sources, platform::poll_entry* storage) noexcept
    : sources_(sources), all_(storage, count(sources)) {
    platform::poll_entry* next = storage;
    for (const source& each : sources) {
        if (each.what() == source::kind::descriptor) *next++ = {each.descriptor(), each.asked()};
    }
}

descriptors::~descriptors() {
    if (bell_ != platform::no_doorbell) platform::poller::give_doorbell_back(bell_);
}

void descriptors::look() {
    const auto found =
        platform::poller::poll(all_, platform::no_doorbell, deadline(std::chrono::nanoseconds(0)));
    check(found.error, found.culprit);
}

int descriptors::take_bell() noexcept {
    const auto taken = platform::poller::take_doorbell();
    bell_ = taken.id;
    return taken.error;
}

void descriptors::fail_without_bell(int error) {
    detail::throw_or_die(
        std::system_error(error, platform::error_category(), "tocsin::wait_any: cannot get a doorbell"));
}

found_source descriptors::first() const noexcept {
    std::size_t entry = 0;
    for (std::uint32_t i = 0; i != sources_.size(); ++i) {
        if (sources_[i].what() != source::kind::descriptor) continue;
        if (const readiness found = all_[entry++].found; found != readiness::none) return {i, found};
    }
    return {};
}

std::uint32_t descriptors::source_of(std::size_t entry) const noexcept {
    std::uint32_t index = 0;
    for (;; ++index) {
        if (sources_[index].what() == source::kind::descriptor && entry-- == 0) return index;
    }
}

void descriptors::check(int error, std::size_t culprit) const {
    std::uint32_t whose = multi_wait::none;
    if (error != 0) {
        if (culprit != platform::no_culprit) whose = source_of(culprit);
    } else if (const found_source bad = first(); has(bad.found, readiness::invalid)) {
        error = EBADF;
        whose = bad.index;
    }
    if (error == 0) return;
    char message[96] = "tocsin::wait_any: poll";
    if (whose != multi_wait::none) {
        std::snprintf(message, sizeof message, "tocsin::wait_any: source %zu, descriptor %d",
                      std::size_t{whose}, sources_[whose].descriptor());
    }
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

bool take_if_ready(const source& from) noexcept {
    switch (from.what()) {
        case source::kind::lot:
            return detail::may_be_ready(from.lot(), from.object()) && from.lot().try_take(from.object());
        case source::kind::custom: return from.custom().try_take(from.object());
        case source::kind::timer: return from.when().has_passed();
        case source::kind::descriptor: break;
    }
    return false;
}

found_source take_first_ready(std::span<const source> sources, descriptors* polled, std::uint32_t begin) {
    bool looked = false;
    std::size_t entry = polled == nullptr ? 0 : descriptors::count(sources.first(begin));
    const auto count = static_cast<std::uint32_t>(sources.size());
    for (std::uint32_t looks = 0, i = begin; looks != count; ++looks, ++i) {
        if (i == count) i = 0, entry = 0;
        if (sources[i].what() != source::kind::descriptor) {
            if (take_if_ready(sources[i])) return {i};
            continue;
        }
        if (polled == nullptr) continue;
        if (!std::exchange(looked, true)) polled->look();
        if (const readiness found = polled->all()[entry++].found; found != readiness::none) return {i, found};
    }
    return {};
}

std::uint32_t first_to_look_at(std::span<const source> sources, wait_order order) noexcept {
    if (order == wait_order::listed) return 0;
    return static_cast<std::uint32_t>(platform::drawn_number() % sources.size());
}

void give_back(const source& taken) noexcept {
    if (taken.what() == source::kind::lot && taken.lot().give_back != nullptr) {
        taken.lot().give_back(taken.object());
    } else if (taken.what() == source::kind::custom && taken.custom().give_back != nullptr) {
        taken.custom().give_back(taken.object());
    }
}

std::span<const source> before_descriptors(std::span<const source> sources) noexcept {
    const auto is_descriptor = [](const source& each) { return each.what() == source::kind::descriptor; };
    return {sources.begin(), std::ranges::find_if(sources, is_descriptor)};
}

bool may_be_ready_behind_the_first_descriptor(std::span<const source> sources) noexcept {
    const auto may_be_ready = [](const source& each) {
        switch (each.what()) {
            case source::kind::lot: return each.lot().looks_ready(each.object());
            case source::kind::custom: return true;  // only taking it would tell
            case source::kind::timer: return each.when().has_passed();
            case source::kind::descriptor: break;
        }
        return false;
    };
    return std::ranges::any_of(sources.subspan(before_descriptors(sources).size()), may_be_ready);
}

}  // namespace tocsin::core
