// SPDX-License-Identifier: Apache-2.0
// The names of the waits of a shared object, as those of an event: wait(), wait_for(), wait_until(), each with a stop
// token. `Object` has try_wait() and wait_with(until, stop).
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <chrono>

namespace tocsin::detail {

template <class Object>
class shared_waits {
public:
    void wait() { (void)self().wait_with(deadline::never(), nullptr); }
    [[nodiscard]] wait_status wait(const stop_token& stop) {
        return self().wait_with(deadline::never(), &stop);
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest) {
        return self().wait_with(longest, nullptr);
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest, const stop_token& stop) {
        return self().wait_with(longest, &stop);
    }
    [[nodiscard]] wait_status wait_until(const deadline& until) { return self().wait_with(until, nullptr); }
    [[nodiscard]] wait_status wait_until(const deadline& until, const stop_token& stop) {
        return self().wait_with(until, &stop);
    }

protected:
    ~shared_waits() = default;

private:
    Object& self() noexcept { return static_cast<Object&>(*this); }
};

}  // namespace tocsin::detail
