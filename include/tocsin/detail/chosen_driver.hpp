// SPDX-License-Identifier: Apache-2.0
// A driver that the user has given to a wait before the wait starts, and a loop together with such a driver.
#pragma once

#include <tocsin/detail/config.hpp>

#include <utility>

namespace tocsin {

class driver;

namespace detail {

// A driver, or none.
class chosen_driver {
public:
    void choose(driver& which TOCSIN_CAPTURED_BY_THIS) noexcept { which_ = &which; }
    // Gives the driver to an operation that is idle.
    template <class Operation>
    void serve(Operation& wait) const noexcept {
        if (which_ != nullptr) wait.by(*which_);
    }

private:
    driver* which_ = nullptr;
};

// The loop of another library, in which a wait ends, and the driver that serves the wait.
template <class Loop>
class loop_and_driver {
public:
    // NOLINTNEXTLINE(google-explicit-constructor): without a driver
    loop_and_driver(Loop loop) noexcept : loop_(std::move(loop)) {}

    // Lets the driver, instead of the default, serve the deadlines and descriptors (driver.hpp).
    loop_and_driver by(driver& which TOCSIN_LIFETIMEBOUND) const noexcept {
        loop_and_driver other(*this);
        other.driver_.choose(which);
        return other;
    }
    const Loop& loop() const noexcept { return loop_; }
    const chosen_driver& served_by() const noexcept { return driver_; }

private:
    Loop loop_;
    chosen_driver driver_;
};

}  // namespace detail
}  // namespace tocsin
