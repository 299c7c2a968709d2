// SPDX-License-Identifier: Apache-2.0
// Events, words and locks that are destroyed at the earliest moment that the contract permits; threads that end at that
// moment; threads that get signals all the time.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <thread>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

// Waits in one of the ways that can only succeed.
template <class Event>
void wait_until_set(Event& event, random_source& random, const std::stop_token& token) {
    switch (random.below(5)) {
        case 0:
            while (!event.is_set()) std::this_thread::yield();
            return;
        case 1:
            while (!event.try_wait()) std::this_thread::yield();
            return;
        case 2:
            while (event.wait_for(nanoseconds(random.below(50'000))) != wait_status::signaled) {
            }
            return;
        case 3:
            while (event.wait(token) != wait_status::signaled) {
            }
            return;
        default: event.wait(random.one_in(2) ? tocsin::spin_policy::none() : tocsin::spin_policy());
    }
}

// Heap objects, deleted at once by the thread that was released. AddressSanitizer reports a late touch, and so does the
// next object at the same address, which would find itself set.
template <class Event>
void delete_right_after_release(const char* name) {
    const stress_time time;
    std::array<std::atomic<Event*>, 3> requests{};
    std::atomic<bool> enough{false};
    std::atomic<long> deleted{0};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        std::stop_source stop;
        while (!time.is_over()) {
            auto event = std::make_unique<Event>();
            ASSERT_FALSE(event->is_set());
            requests[static_cast<std::size_t>(number)].store(event.get());
            jitter(random);
            wait_until_set(*event, random, stop.get_token());
            event.reset();
            deleted.fetch_add(1);
        }
    });
    threads.start_many(2, "setter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 50);
        while (!enough.load()) {
            for (auto& request : requests) {
                if (Event* const event = request.exchange(nullptr)) {
                    jitter(random);
                    event->set();
                }
            }
            std::this_thread::yield();
        }
    });
    threads.until_finished(3);
    enough.store(true);
    threads.join();
    std::printf("%s: %ld deleted right after their release\n", name, deleted.load());
}

TEST(DestroyedAtOnce, AManualResetEventIsNotTouchedAgain) {
    delete_right_after_release<manual_reset_event>("manual");
}

TEST(DestroyedAtOnce, AnAutoResetEventIsNotTouchedAgain) {
    delete_right_after_release<auto_reset_event>("auto");
}

// Several threads wait; the last to return deletes the gate.
TEST(DestroyedAtOnce, AGateIsDeletedByTheLastOfManyItReleased) {
    const stress_time time;
    long gates = 0;
    while (!time.is_over()) {
        auto* const gate = new manual_reset_event;
        std::atomic<int> inside{5};
        thread_group threads;
        threads.start_many(5, "waiter", [&](int) {
            gate->wait();
            if (inside.fetch_sub(1) == 1) delete gate;
        });
        if (gates % 2 == 0) support::until_parked(gate, 5);
        gate->set();
        threads.join();
        ++gates;
    }
    std::printf("%ld gates\n", gates);
}

TEST(DestroyedAtOnce, AOneShotOnTheWaitersStackServesManyClients) {
    struct request {
        int question = 0;
        int answer = 0;
        auto_reset_event done;
    };
    const stress_time time;
    std::array<std::atomic<request*>, 4> desk{};
    std::atomic<bool> enough{false};
    std::atomic<long> served{0};
    thread_group threads;
    threads.start_many(4, "client", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 100);
        for (int i = 0; !time.is_over(); ++i) {
            request mine;
            mine.question = i;
            desk[static_cast<std::size_t>(number)].store(&mine);
            jitter(random);
            mine.done.wait();
            ASSERT_EQ(mine.answer, i + 1);
            served.fetch_add(1);
        }
    });
    threads.start("server", [&] {
        while (!enough.load()) {
            for (auto& slot : desk) {
                if (request* const each = slot.exchange(nullptr)) {
                    each->answer = each->question + 1;
                    each->done.set();
                }
            }
            std::this_thread::yield();
        }
    });
    threads.until_finished(4);
    enough.store(true);
    threads.join();
    std::printf("%ld requests\n", served.load());
}

TEST(DestroyedAtOnce, AWordAndALockAreNotTouchedAgain) {
    struct shared {
        std::atomic<std::uint16_t> word{0};
        tocsin::word_lock<std::uint16_t> lock;
    };
    const stress_time time;
    std::atomic<shared*> request{nullptr};
    std::atomic<bool> enough{false};
    long deleted = 0;
    thread_group threads;
    threads.start("changes and unlocks", [&] {
        while (!enough.load()) {
            shared* const each = request.exchange(nullptr);
            if (each == nullptr) {
                std::this_thread::yield();
                continue;
            }
            each->word.store(1, std::memory_order_release);
            tocsin::wake_by_address_all(&each->word);
            each->lock.unlock();
        }
    });
    random_source random(150);
    while (!time.is_over()) {
        auto each = std::make_unique<shared>();
        each->lock.lock();
        request.store(each.get());
        jitter(random);
        tocsin::wait_until_changed(&each->word, std::uint16_t{0});
        each->lock.lock();
        each.reset();
        ++deleted;
    }
    enough.store(true);
    threads.join();
    std::printf("%ld deleted\n", deleted);
}

// Waiters and setters whose threads make one call and end right after it.
TEST(Threads, ThatEndAtOnceLeaveNothingBehind) {
    const stress_time time;
    std::array<auto_reset_event, 4> events;
    random_source random(200);
    long threads_made = 0;
    while (!time.is_over()) {
        thread_group threads;
        for (int i = 0; i < 6; ++i) {
            auto& event = events[random.below(events.size())];
            const nanoseconds longest(random.below(60'000));
            if (random.one_in(2)) {
                threads.start("short", [&event, longest] { (void)event.wait_for(longest); });
            } else {
                threads.start("short", [&event] { event.set(); });
            }
            ++threads_made;
        }
        threads.join();
    }
    for (auto& each : events) EXPECT_EQ(tocsin::waiting_on(&each), 0u);
    std::printf("%ld threads\n", threads_made);
}

#if TOCSIN_ON_POSIX
// What threads that get signals do: they pass tokens, lock, wait on an address, and pass a gate.
struct signal_target {
    const stress_time time;
    auto_reset_event token;
    auto_reset_event back;
    manual_reset_event gate;
    tocsin::word_lock<std::uint8_t> lock;
    std::atomic<std::uint8_t> word{0};
    std::atomic<bool> enough{false};
    std::atomic<long> got{0};
    long counted = 0;
    long given = 0;

    void take_tokens() {
        random_source random(250);
        while (!enough.load()) {
            if (token.wait_for(nanoseconds(random.below(200'000))) == wait_status::signaled) {
                got.fetch_add(1);
                back.set();
            }
        }
    }
    void count_under_the_lock() {
        while (!enough.load()) {
            lock.lock();
            ++counted;
            if (counted % 16 == 0) std::this_thread::yield();
            lock.unlock();
        }
    }
    void wait_on_the_address() {
        std::uint8_t seen = 0;
        while (!enough.load()) {
            seen = tocsin::wait_until_changed(&word, seen, 1ms).value;
        }
    }
    void pass_the_gate() {
        while (!enough.load()) {
            gate.wait();
            gate.reset();
        }
    }
    void give_tokens() {
        while (!time.is_over()) {
            ++given;
            token.set();
            back.wait();
            gate.set();
            word.fetch_add(1);
            tocsin::wake_by_address_all(&word);
        }
        enough.store(true);
        gate.set();
    }
};

TEST(Signals, BombardingEveryThreadChangeNothing) {
    const support::signal_counter signals(SIGUSR1);
    signal_target target;
    thread_group threads;
    threads.start("takes tokens", [&] { target.take_tokens(); });
    threads.start_many(2, "locks", [&](int) { target.count_under_the_lock(); });
    threads.start("on the address", [&] { target.wait_on_the_address(); });
    threads.start("at the gate", [&] { target.pass_the_gate(); });
    threads.start("gives tokens", [&] { target.give_tokens(); });
    for (std::size_t i = 0; i < threads.size(); ++i) (void)threads.id(i);
    random_source random(260);
    while (!target.enough.load()) {
        const auto index = static_cast<std::size_t>(random.below(threads.size()));
        if (!threads.finished(index)) pthread_kill(threads.handle(index), SIGUSR1);
        std::this_thread::sleep_for(20us);
    }
    support::until("the gate's waiter has seen the end", [&] {
        target.gate.set();
        return threads.finished() == threads.size();
    });
    threads.join();
    std::printf("%ld signals, %ld tokens in, %ld out, %ld locks\n", signals.count(), target.given,
                target.got.load(), target.counted);
    EXPECT_EQ(target.got.load(), target.given);
}
#endif

}  // namespace
