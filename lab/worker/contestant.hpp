// What a contestant is: a struct with a static `info` and a member type for each kind of primitive it
// offers. What it doesn't offer, it doesn't declare; `info` says why, in words that reach the report.
//
//     struct my_library {
//         static constexpr contestant_info info{.name = "my_library", .label = "my library", ...};
//         class auto_event { public: void set(); void wait(); bool try_wait(); };
//     };
//
// kinds               members
// manual_event        set() is_set() wait(), and reset() unless it works once only
// auto_event          set() wait() try_wait(), wait_for(ns) -> bool if it has timed waits;
//                     `static constexpr bool counts = true`, either kind: a set on a set one adds to it
// own_lock            lock() unlock(), of the size it has
// word_lock<W>        the same in a word of exactly that size; bit_lock<W>: in one bit of a word
// address_word<W>     holds a value: store(W) wait(W expected) wake_one() wake_all()
// committer           group commit: made over a flush(how many it covers); submit() returns after one that
//                     began after its call has ended
// event_group         auto events: made with how many; set(i) wait_any() -> i, and wait_all() if it can
// loop_waker          made over idle descriptors; wake() by anybody, wait() until one of those or a wake
// handler             a thread that runs jobs in order: made with a capacity; post(job) join()
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace lab {

enum class role {
    floor,      // what the machine needs for the operation at least; no primitive
    ours,       // tocsin as a user gets it; the one whose wins and losses are counted
    variant,    // tocsin with other settings or another backend: shown, neither peer nor judged
    peer,       // what people use today
    reference,  // a way not to do it, shown for comparison only
    rejected,   // a design of ours that lost
};

// Kinds of run, from short to long.
enum class tier { quick, standard, full };

struct contestant_info {
    std::string_view name;   // on the command line and in result files
    std::string_view label;  // in tables
    lab::role role;
    std::string_view about;
    std::string_view limits = {};  // what it can't promise that an event or lock should
    std::string_view no_manual_event = "has no manual-reset event";
    std::string_view no_auto_event = "has no auto-reset event";
    std::string_view no_lock = "has no lock";
    std::string_view no_address_wait = "has no wait on an address";
    std::string_view no_committer = "is no way to commit in groups";
    std::string_view futex = {};  // Windows: tocsin's way to sleep, which is chosen when the process starts
    tier included_from = tier::quick;  // the shortest kind of run that includes it, unless it is asked for
};

template <class E>
concept settable = requires(E event) { event.set(); };

template <class E>
concept pollable = requires(E event) {
    { event.is_set() } -> std::same_as<bool>;
};

template <class E>
concept waitable = settable<E> && requires(E event) { event.wait(); };

template <class E>
concept resettable = requires(E event) { event.reset(); };

template <class E>
concept consumable = waitable<E> && requires(E event) {
    { event.try_wait() } -> std::same_as<bool>;
};

template <class E>
concept timed = requires(E event) {
    { event.wait_for(std::chrono::nanoseconds(1)) } -> std::same_as<bool>;
};

// A set on a set one adds to it, as with a semaphore.
template <class E>
concept counting = requires { requires E::counts; };

template <class C>
concept has_manual_event = requires { typename C::manual_event; };
template <class C>
concept has_auto_event = requires { typename C::auto_event; };
template <class C>
concept has_own_lock = requires { typename C::own_lock; };
template <class C>
concept has_handler = requires { typename C::handler; };
template <class C>
concept has_committer = requires { typename C::committer; };
template <class C>
concept has_event_group = requires { typename C::event_group; };
template <class C>
concept has_coroutine_event = requires { typename C::coroutine_event; };
template <class C>
concept has_loop_waker = requires { typename C::loop_waker; };
template <class C, class Word>
concept has_word_lock = requires { typename C::template word_lock<Word>; };
template <class C, class Word>
concept has_bit_lock = requires { typename C::template bit_lock<Word>; };
template <class C, class Word>
concept has_address_word = requires { typename C::template address_word<Word>; };

// f(std::type_identity<E>) with the contestant's event, if it has one of that kind that can be waited for.

template <class C, class F>
void with_manual_event(F&& f) {
    if constexpr (has_manual_event<C>) {
        if constexpr (waitable<typename C::manual_event>) f(std::type_identity<typename C::manual_event>{});
    }
}

template <class C, class F>
void with_auto_event(F&& f) {
    if constexpr (has_auto_event<C>) {
        if constexpr (consumable<typename C::auto_event>) f(std::type_identity<typename C::auto_event>{});
    }
}

// Why a contestant can't take part in a scenario about a kind of event; empty if it can.

template <class C>
std::string refuses_manual_event() {
    if constexpr (!has_manual_event<C>)
        return std::string(C::info.no_manual_event);
    else if constexpr (!waitable<typename C::manual_event>)
        return "can't be waited for";
    else
        return {};
}

template <class C>
std::string refuses_auto_event() {
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

template <class C>
constexpr bool is_floor = C::info.role == role::floor;

// A contestant that spins for as long as it takes says so; with one core it would only delay the thread
// that it waits for.
template <class C>
constexpr bool burns_a_core = requires { requires C::burns_a_core; };

// A contestant that copes with so many threads at most says so: `most_threads`. One whose events are file
// descriptors too: `is_descriptor`. One that not every system has: `missing_here()`, why it can't take part.

// Makes an event that everybody has left unset again: one that works once is made anew.
template <class E>
void rearm(E& event) {
    if constexpr (resettable<E>) {
        event.reset();
    } else {
        std::destroy_at(&event);
        std::construct_at(&event);
    }
}

}  // namespace lab
