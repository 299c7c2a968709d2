// SPDX-License-Identifier: Apache-2.0
// A contestant is a struct with a static `info` and a member type for each kind of primitive that it offers. It
// declares no type for a kind that it doesn't offer; `info` says why, in words that reach the report.
//
//     struct my_library {
//         static constexpr contestant_info info{.name = "my_library", .label = "my library", ...};
//         class auto_event { public: void set(); void wait(); bool try_wait(); };
//     };
//
// kinds               members
// manual_event        set() is_set() wait(), and reset() unless it works only once
// auto_event          set() wait() try_wait(), and wait_for(ns) -> bool if it has timed waits
//                     either event: `static constexpr bool counts = true` if a set on a set event adds to it
// own_lock            lock() unlock(), of whatever size it has
// word_lock<W>        the same in a word of exactly that size; bit_lock<W>: in one bit of a word
// address_word<W>     holds a value: store(W) wait(W expected) wake_one() wake_all(), and add_and_wake_one(), which
//                     adds 1 to it and then wakes
// committer           group commit, made with flush(how many submissions it covers); submit() returns after the end
//                     of a flush that began after the call
// event_group         auto events, made with their number; set(i) wait_any() -> i, and wait_all() if it can
// coroutine_event     set(), which resumes one coroutine that waits; co_await coming()
// coroutine_gate      a gate and auto events, made with their number; open() close(); allow(i) sets an event;
//                     co_await coming(i) waits for the gate and that event, and takes the event
// async_event         an auto event: set(). Its member type `wait` is made with the event, and has start(), ended() ->
//                     the number of waits that are over, and cancel() -> bool if it can be cancelled. `timed_wait` is a
//                     wait with a deadline in an hour. `static constexpr bool never_waits = true` if it only tries
// loop_waker          made with idle descriptors; any thread may wake(); wait() returns after a wake
// atomic_number       an int, 0 at first: increment() -> the new value, exchange(to) and compare_exchange(to, expected)
//                     -> the old value
// item_channel        numbers in a bounded queue, made with its capacity; send(n) receive() -> n, both wait
// channel_group       channels_in_group such queues, made with the capacity of each; send(which, n), and for one
//                     thread receive_any() -> n from any of them; both wait
// handler             a thread that runs jobs in order, made with a capacity; post(job) join()
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace lab {

enum class role {
    floor,      // no primitive: what the machine needs for the operation at least
    ours,       // tocsin as a user gets it; its wins and losses are counted
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
    std::string_view limits = {};  // what an event or a lock should promise and this doesn't
    std::string_view no_manual_event = "has no manual-reset event";
    std::string_view no_auto_event = "has no auto-reset event";
    std::string_view no_lock = "has no lock";
    std::string_view no_address_wait = "has no wait on an address";
    std::string_view no_committer = "is not a group commit";
    std::string_view futex = {};       // Windows: how tocsin sleeps, chosen when the process starts
    tier included_from = tier::quick;  // the shortest kind of run that includes it, unless it is asked for
};

template <class E>
concept settable = requires(E event) { event.set(); };

template <class E>
concept has_is_set = requires(E event) {
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

// A set on a set event adds to it, as with a semaphore.
template <class E>
concept counting = requires { requires E::counts; };

// An asynchronous wait that can be pending, and be cancelled then.
template <class E>
concept can_cancel = requires(typename E::wait wait) {
    { wait.cancel() } -> std::same_as<bool>;
};

template <class C>
concept has_manual_event = requires { typename C::manual_event; };
template <class C>
concept has_auto_event = requires { typename C::auto_event; };
template <class C>
concept has_own_lock = requires { typename C::own_lock; };
template <class C>
concept has_item_channel = requires { typename C::item_channel; };
template <class C>
concept has_channel_group = requires { typename C::channel_group; };
template <class C>
concept has_handler = requires { typename C::handler; };
template <class C>
concept has_committer = requires { typename C::committer; };
template <class C>
concept has_event_group = requires { typename C::event_group; };
template <class C>
concept has_coroutine_event = requires { typename C::coroutine_event; };
template <class C>
concept has_coroutine_gate = requires { typename C::coroutine_gate; };
template <class C>
concept has_async_event = requires { typename C::async_event; };
template <class C>
concept has_atomic_number = requires { typename C::atomic_number; };
template <class C>
concept has_loop_waker = requires { typename C::loop_waker; };
template <class C, class Word>
concept has_word_lock = requires { typename C::template word_lock<Word>; };
template <class C, class Word>
concept has_bit_lock = requires { typename C::template bit_lock<Word>; };
template <class C, class Word>
concept has_address_word = requires { typename C::template address_word<Word>; };

inline constexpr std::size_t channels_in_group = 8;

template <class C>
constexpr bool is_floor = C::info.role == role::floor;

// A contestant says so if it spins for as long as it waits. On a single core that would only delay the thread that it
// waits for.
template <class C>
constexpr bool burns_a_core = requires { requires C::burns_a_core; };

// Contestants may also have these members: `max_threads`, the number of threads that it can cope with;
// `is_descriptor`, if its events are file descriptors; `missing_here()`, why this system doesn't have it, or "".

// Resets an event that nobody uses any more; constructs it again if it works only once.
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
