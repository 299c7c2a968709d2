// SPDX-License-Identifier: Apache-2.0
// What a loop that only polls a descriptor sleeps on: a flag, or a deadline of a timer. Descriptors are left out,
// because the system makes the outer descriptor readable for them.
#pragma once

#include "support/library_model.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>

namespace tocsin::library_model {

// Time is not modelled: an armed timer is due.
inline bool timer_is_set = false;  // only the loop's thread touches it

class modelled_view final : public platform::poll_view {
public:
    modelled_view() { timer_is_set = false; }
    int descriptor() const noexcept override { return 4; }
    int set_deadlines(const deadline& steady, const deadline& system) noexcept override {
        timer_is_set = !steady.is_never() || !system.is_never();
        return 0;
    }
};

// A set without members. Nobody sleeps in it.
class viewed_poll_set final : public platform::poll_set {
public:
    int add(int, readiness, std::uint64_t) noexcept override { return ENOTSUP; }
    int change(int, readiness, std::uint64_t) noexcept override { return ENOENT; }
    int remove(int) noexcept override { return ENOENT; }
    platform::poll_result wait(std::span<item>, const deadline&) noexcept override {
        return {.timed_out = true};
    }
    platform::doorbell_id bell() const noexcept override { return 0; }
    std::unique_ptr<platform::poll_view> open_view(int, int& error) noexcept override {
        error = 0;
        return std::make_unique<modelled_view>();
    }
};

class modelled_view_test : public testing::Test {
protected:
    modelled_view_test() {
        make_poll_set = []() -> std::unique_ptr<platform::poll_set> {
            return std::make_unique<viewed_poll_set>();
        };
    }
    ~modelled_view_test() override { make_poll_set = nullptr; }
};

inline void sleep_until_readable(reports which = reports::levels) {
    if (!timer_is_set) sleep_until_raised(which);
}

}  // namespace tocsin::library_model
