// SPDX-License-Identifier: Apache-2.0
// The library's side: real objects, and threads that make the calls.
#pragma once

#include "calls.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/status.hpp>
#include <tocsin/word_lock.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace fuzz {

// A channel that tells how many operations wait at it.
class watched_channel : public tocsin::channel<std::uint8_t> {
public:
    using channel::channel;
    std::size_t waiting();
};

struct things {
    std::array<tocsin::auto_reset_event, 2> tokens;
    std::array<tocsin::manual_reset_event, 2> gates;
    std::array<tocsin::counting_semaphore<>, 2> semaphores{tocsin::counting_semaphore<>(0),
                                                           tocsin::counting_semaphore<>(0)};
    std::array<std::atomic<std::uint8_t>, 2> bytes{};
    std::atomic<std::uint32_t> word{0};
    std::array<watched_channel, 3> channels{watched_channel(capacities[0]), watched_channel(capacities[1]),
                                            watched_channel(capacities[2])};
    std::array<tocsin::latch, 2> latches{tocsin::latch(expected_arrivals[0]),
                                         tocsin::latch(expected_arrivals[1])};
    std::array<std::atomic<std::uint8_t>, 2> missing{expected_arrivals[0], expected_arrivals[1]};
    tocsin::condition condition;
    tocsin::word_lock<> condition_lock;
    tocsin::auto_reset_event never_set;  // for a wait alongside the condition
    tocsin::word_lock<std::uint8_t> lock;
    std::atomic<std::uint16_t> bits{0};

    const void* address(std::size_t object) const;  // not of a channel
    std::size_t waiting(std::size_t object);        // both bit locks together
    bool is_set(std::size_t event) const;
    std::uint8_t value(std::size_t word) const;
    bool is_locked(std::size_t lock) const;
};

// Threads that live as long as the program, on fresh objects for each of the fuzzer's programs.
class stage {
public:
    stage();
    ~stage();

    void clear();  // makes new objects at new addresses; no actor may be in a call

    // Starts calls of different idle actors as simultaneously as possible. Returns true when every actor has
    // returned or is parked without a deadline, and false if that does not happen.
    [[nodiscard]] bool play(const std::vector<call>& calls);

    // One actor waits on an event of its own and destroys it as soon as it is released; the other sets it.
    void hand_over(std::size_t waiter, std::size_t setter, bool gate);

    bool is_idle(std::size_t actor) const { return actors_[actor].idle.load(); }
    result came(std::size_t actor) const { return actors_[actor].came; }  // of an idle one
    bool timed_out_early() const { return early_.load(); }
    things& all() const { return *things_; }

    // Releases every actor, whatever it waits for.
    void release_all();

private:
    struct player {
        std::thread thread;
        std::function<result()> task;  // under the mutex
        std::atomic<bool> idle{true};
        result came = result::none;
        patience until = patience::none;
        bool stoppable = false;
        std::size_t object = 0;
        std::size_t queues = 1;  // in so many it waits
        std::stop_source stop;
        std::mutex mutex;
        std::condition_variable ended;  // an operation of this actor
    };

    void live(player& self);
    void give(player& to, std::function<result()> task);
    bool is_quiet() const;
    bool comes_to_rest() const;

    result perform(const call& what);
    template <class Event>
    result on_event(Event& event, const call& what);
    result on_semaphore(tocsin::counting_semaphore<>& semaphore, const call& what);
    result on_channel(watched_channel& channel, const call& what);
    result send(watched_channel& channel, const call& what);
    result receive(watched_channel& channel, const call& what);
    result receive_either(const call& what);
    template <class... Sources>
    tocsin::any_result wait_for_any(const call& what, Sources&... sources);
    result on_latch(std::size_t latch, const call& what);
    result on_condition(const call& what);
    template <class Word>
    result on_word(std::atomic<Word>& word, const call& what);
    template <class Lock>
    result on_lock(Lock&& lock, const call& what);
    template <class Source>
    tocsin::wait_status by_operation(Source& from, const call& what);
    template <class Call>
    result not_early(const call& what, Call wait);

    std::unique_ptr<things> things_ = std::make_unique<things>();
    std::array<player, actors> actors_;
    std::atomic<bool> early_{false};
    std::mutex mutex_;
    std::condition_variable told_;
    bool over_ = false;
};

}  // namespace fuzz
