// SPDX-License-Identifier: Apache-2.0
// What must be true of a contestant's primitives before they are timed.
#pragma once

#include "contestant.hpp"
#include "measure/clock.hpp"
#include "measure/threads.hpp"
#include "scenario.hpp"

#include <atomic>
#include <cstdint>

namespace lab {

template <class E>
void check_manual_event(context& run) {
    E event;
    if constexpr (has_is_set<E>) run.require(!event.is_set(), "a new event is unset");
    event.set();
    if constexpr (has_is_set<E>) run.require(event.is_set(), "a set event is set");
    if constexpr (waitable<E>) {
        event.wait();  // if it is wrong, it hangs and the watchdog says so
        event.wait();
        rearm(event);
        if constexpr (has_is_set<E>) run.require(!event.is_set(), "a reset event is unset");
        constexpr std::uint32_t waiters = 4;
        std::uint64_t published = 0;
        std::atomic<std::uint32_t> saw{0};
        thread_group threads(waiters, [&](std::size_t) {
            event.wait();
            if (published == 42) saw.fetch_add(1);
        });
        threads.go();
        published = 42;
        event.set();
        threads.join();
        run.require(saw == waiters,
                    "a set releases every waiter, and each sees what was written before the set");
    }
}

template <class E>
void check_auto_event(context& run) {
    E event;
    run.require(!event.try_wait(), "a new event is unset");
    event.set();
    run.require(event.try_wait(), "a set event can be consumed");
    run.require(!event.try_wait(), "one set is consumed once");
    if constexpr (!counting<E>) {
        event.set();
        event.set();
        run.require(event.try_wait(), "a set on a set event leaves it set");
        run.require(!event.try_wait(), "a set on a set event adds nothing");
    }
    if constexpr (timed<E>) {
        using std::chrono::milliseconds;
        run.require(!event.wait_for(milliseconds(0)), "a wait for 0 ns on an unset event times out");
        const std::int64_t start = now();
        run.require(!event.wait_for(milliseconds(2)), "a timed wait on an unset event times out");
        run.require(now() - start >= 2'000'000, "a timed wait that times out has lasted its time");
        event.set();
        run.require(event.wait_for(milliseconds(1000)), "a timed wait on a set event consumes it");
    }
    // Ball and answer: on each trip both sides publish a number in a plain variable.
    E ball, answer;
    std::uint64_t number = 0;
    constexpr std::uint64_t trips = 300;
    std::atomic<bool> right{true};
    thread_group partner(1, [&](std::size_t) {
        for (std::uint64_t i = 0; i < trips; ++i) {
            ball.wait();
            if (number != 2 * i + 1) right = false;
            number = 2 * i + 2;
            answer.set();
        }
    });
    partner.go();
    for (std::uint64_t i = 0; i < trips; ++i) {
        number = 2 * i + 1;
        ball.set();
        answer.wait();
        if (number != 2 * i + 2) right = false;
    }
    partner.join();
    run.require(right, "what was written before the set is seen after the wait");
}

template <class Lock>
void check_lock(context& run) {
    Lock lock;
    std::uint64_t counter = 0;
    constexpr std::uint64_t threads = 4, each = 2'000;
    thread_group workers(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i < each; ++i) {
            lock.lock();
            ++counter;
            lock.unlock();
        }
    });
    workers.go();
    workers.join();
    run.require(counter == workers.size() * each, "one thread at a time holds the lock");
}

template <class Word>
void check_address_word(context& run) {
    Word word;
    word.store(1);
    word.wait(2);  // the word holds another value: returns at once
    thread_group waiters(4, [&](std::size_t) { word.wait(1); });
    waiters.go();
    word.store(2);
    word.wake_all();
    waiters.join();
    word.wake_one();  // nobody there
    word.store(1);
    thread_group waiter(1, [&](std::size_t) { word.wait(1); });
    waiter.go();
    word.add_and_wake_one();
    waiter.join();
    word.add_and_wake_one();
    word.wait(2);  // 3
    run.require(true, "");
}

template <class E>
void check_async_event(context& run) {
    E event;
    typename E::wait wait(event);
    event.set();
    wait.start();
    run.require(wait.ended() == 1, "a wait for a set event ends at once");
    if constexpr (!requires { E::never_waits; }) {
        wait.start();
        run.require(wait.ended() == 1, "the wait before has reset the event");
        thread_group setter(1, [&](std::size_t) { event.set(); });
        setter.go();
        setter.join();
        run.require(wait.ended() == 2, "a set ends the wait of another thread");
        typename E::wait later(event);
        wait.start();
        later.start();
        event.set();
        run.require(wait.ended() == 3 && later.ended() == 0, "a set ends the wait that was started first");
        event.set();
        run.require(later.ended() == 1, "the next set ends the next wait");
    }
    if constexpr (can_cancel<E>) {
        const std::uint64_t before = wait.ended();
        wait.start();
        run.require(wait.cancel() && wait.ended() == before + 1, "a pending wait can be cancelled");
        event.set();
        run.require(wait.ended() == before + 1, "a cancelled wait takes no set");
        wait.start();
        run.require(wait.ended() == before + 2, "a set after the cancellation is kept for the next wait");
    }
}

template <class Committer>
void check_committer(context& run) {
    std::atomic<std::uint64_t> begun{0}, ended{0};
    std::atomic<bool> one_at_a_time{true};
    std::uint64_t covered = 0;
    Committer committer([&](std::size_t count) {
        if (begun.fetch_add(1) != ended.load()) one_at_a_time = false;
        covered += count;
        ended.fetch_add(1);
    });
    constexpr std::uint64_t threads = 8, each = 200;
    std::atomic<bool> early{false};
    thread_group submitters(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i < each; ++i) {
            const std::uint64_t before = begun.load();
            committer.submit();
            if (ended.load() <= before) early = true;
        }
    });
    submitters.go();
    submitters.join();
    run.require(one_at_a_time, "flushes follow each other");
    run.require(!early, "a submission returns after a flush that began after it");
    run.require(covered == submitters.size() * each, "each submission is covered once");
}

}  // namespace lab
