// SPDX-License-Identifier: Apache-2.0
// A wait that is described now and started later, perhaps several times: the sources, the limits, the driver, and
// whether it waits for any of the sources or for all of them. A sender is such a description (sender.hpp), and so is
// what an Asio completion token may keep before it starts the wait (asio.hpp).
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/chosen_driver.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/source.hpp>
#include <tocsin/stop_token.hpp>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tocsin::detail {

// A source whose type affects the size of the wait. The description refers to the source, as the wait does.
template <class Source>
struct described_reference {
    static constexpr bool is_polled = false;
    Source* from;
    Source& get() const noexcept { return *from; }
};

// Any other source. A `source` is small and only refers to what is waited for, so the description has a copy.
template <bool Polled>
struct described_source {
    static constexpr bool is_polled = Polled;
    source from;
    operator source() const noexcept {
        return from;
    }  // NOLINT(google-explicit-constructor): a source, as it was
    const described_source& get() const noexcept { return *this; }
};

template <class Argument>
auto describe_source(Argument& from) noexcept(become_sources_quietly<Argument&>) {
    if constexpr (settable_event<Argument> || custom_source<Argument>) {
        return described_reference<Argument>{std::addressof(from)};
    } else {
        return described_source<may_be_polled<Argument>>{source(from)};
    }
}

struct described_limits {
    explicit described_limits(const limits& how)
        : until(how.until), order(how.order), stop_first(how.stop_first) {
        if (how.stop.get() != nullptr) stop = *how.stop.get();
    }
    limits get() const noexcept {
        return {.until = until, .stop = stop, .order = order, .stop_first = stop_first};
    }

    deadline until;
    stop_token stop;
    wait_order order;
    bool stop_first;
};
struct described_no_limits {
    explicit described_no_limits(const limits&) noexcept {}
};

template <bool All, class Limits, class... Described>
class described_wait {
public:
    static constexpr bool for_all = All;
    static constexpr bool has_limits = std::is_same_v<Limits, described_limits>;
    // Whether the start of the wait may throw, or the wait may fail later. A wait for all checks its sources when it
    // starts.
    static constexpr bool may_fail = All || has_limits || (Described::is_polled || ...);

    template <class... Arguments>
    explicit described_wait(const limits& how,
                            Arguments&... from) noexcept(become_sources_quietly<Arguments&...>)
        : limits_(how), sources_(describe_source(from)...) {}

    void serve_by(const chosen_driver& which) noexcept { driver_ = which; }
    const chosen_driver& served_by() const noexcept { return driver_; }

    // The operation that waits as described and then calls the function. The caller gives it the driver.
    template <class Function>
    auto operation(Function then) const {
        return std::apply(
            [&](const Described&... each) {
                if constexpr (All && has_limits) {
                    return all_operation(std::move(then), limits_.get(), each.get()...);
                } else if constexpr (All) {
                    return all_operation(std::move(then), each.get()...);
                } else if constexpr (has_limits) {
                    return any_operation(std::move(then), limits_.get(), each.get()...);
                } else {
                    return any_operation(std::move(then), each.get()...);
                }
            },
            sources_);
    }

private:
    TOCSIN_NO_UNIQUE_ADDRESS Limits limits_;
    chosen_driver driver_;
    std::tuple<Described...> sources_;
};

// `Arguments` are the deduced types of forwarding references.
template <bool All, class Limits, class... Arguments>
auto keep_wait(const limits& how, Arguments&... from) noexcept(become_sources_quietly<Arguments&...>) {
    using described = described_wait<All, Limits, decltype(describe_source(from))...>;
    return described(how, from...);
}

}  // namespace tocsin::detail
