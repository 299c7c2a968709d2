// SPDX-License-Identifier: Apache-2.0
// The kinds of primitive that most scenarios are about; `scenario_of` (scenario.hpp) says what a kind is.
#pragma once

#include "checks.hpp"
#include "contestant.hpp"
#include "scenario.hpp"

#include <string>
#include <type_traits>

namespace lab {

struct manual_events {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_manual_event<C>) {
            if constexpr (waitable<typename C::manual_event>)
                f(std::type_identity<typename C::manual_event>{});
        }
    }

    template <class C>
    static std::string refuses(const parameters&) {
        if constexpr (!has_manual_event<C>)
            return std::string(C::info.no_manual_event);
        else if constexpr (!waitable<typename C::manual_event>)
            return "can't be waited for";
        else
            return {};
    }

    template <class E>
    static void check(context& run) {
        check_manual_event<E>(run);
    }
};

struct auto_events {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_auto_event<C>) {
            if constexpr (consumable<typename C::auto_event>) f(std::type_identity<typename C::auto_event>{});
        }
    }

    template <class C>
    static std::string refuses(const parameters&) {
        if constexpr (requires { C::missing_here(); }) {
            if (std::string why = C::missing_here(); !why.empty()) return why;
        }
        if constexpr (!has_auto_event<C>)
            return std::string(C::info.no_auto_event);
        else if constexpr (!consumable<typename C::auto_event>)
            return "can't be waited for";
        else
            return {};
    }

    template <class E>
    static void check(context& run) {
        check_auto_event<E>(run);
    }
};

// Manual events in the cases for which IsManual(case) holds, auto events in the others.
template <bool (*IsManual)(const parameters&)>
struct events_of_case {
    template <class C, class F>
    static void with(const parameters& given, F f) {
        if (IsManual(given))
            manual_events::with<C>(given, f);
        else
            auto_events::with<C>(given, f);
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        return IsManual(given) ? manual_events::refuses<C>(given) : auto_events::refuses<C>(given);
    }

    template <class E>
    static void check(context& run) {
        if constexpr (consumable<E>)
            check_auto_event<E>(run);
        else
            check_manual_event<E>(run);
    }
};

inline bool names_manual_event(const parameters& given) { return given.text("event") == "manual"; }

struct committers {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_committer<C>) f(std::type_identity<typename C::committer>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_committer<C> ? std::string() : std::string(C::info.no_committer);
    }

    template <class Committer>
    static void check(context& run) {
        check_committer<Committer>(run);
    }
};

struct async_events {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_async_event<C>) f(std::type_identity<typename C::async_event>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_async_event<C> ? "" : "has no asynchronous wait";
    }

    template <class E>
    static void check(context& run) {
        check_async_event<E>(run);
    }
};

}  // namespace lab
