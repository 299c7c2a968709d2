// SPDX-License-Identifier: Apache-2.0
// The contract in its simplest form: a world in which every call is one step, as if one mutex were held for all of
// it. A wait that can't end at once joins a queue.
//
// Calls that run at the same time may take their steps in any order, and a wait for a moment may end at any time. So
// `outcomes` returns every world that can result; the library must be in one of them.
#pragma once

#include "calls.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace fuzz {

enum class phase : std::uint8_t {
    idle,      // has returned from its last call
    called,    // has been told to call, and has not taken its step
    parked,    // waits in a queue
    retrying,  // was told that a lock is free and has not tried again yet
    // A wait for two channels looks at one after the other, and queues at one after the other.
    found_first_empty,
    queues_at_first,
    queues_at_second,  // and waits at the first one already
};

struct actor_state {
    phase now = phase::idle;
    call doing;
    result came = result::none;
    bool stop_requested = false;
    std::size_t collected = 0;  // permits, by an acquire that waits for several

    auto operator<=>(const actor_state&) const = default;
};

class world {
public:
    void begin(const call& what);

    // Every world in which all actors are idle or parked without a deadline.
    std::set<world> outcomes() const;

    const actor_state& actor(std::size_t number) const { return actors_[number]; }
    bool is_set(std::size_t event) const { return on_[event]; }
    bool is_locked(std::size_t lock) const { return on_[lock]; }
    std::uint8_t value(std::size_t word) const { return values_[word - first_word]; }
    bool is_closed(std::size_t channel) const { return on_[channel]; }
    std::size_t items(std::size_t channel) const { return items_[channel - first_channel].size(); }
    std::size_t waiting(std::size_t object) const { return queues_[object].size(); }

    auto operator<=>(const world&) const = default;

private:
    void collect(std::set<world>& visited, std::set<world>& quiet) const;
    bool is_quiet() const;

    void step(std::size_t actor);    // takes the step of its call, or of its retry
    void expire(std::size_t actor);  // its deadline passes

    result finish(std::size_t actor, result came);
    void wait_for_event(std::size_t actor);
    void wait_for_value(std::size_t actor);
    void acquire(std::size_t actor);
    void take_lock(std::size_t actor);
    void send(std::size_t actor);
    void receive(std::size_t actor);
    void receive_either(std::size_t actor);
    void wait_notified(std::size_t actor);
    void end_or_park(std::size_t actor);
    bool ends_at_once(std::size_t actor);
    bool try_send(std::size_t actor);
    bool try_receive(std::size_t actor, std::size_t channel);
    void end_wait(std::size_t actor, result came);
    bool close(std::size_t channel);
    void count_down(std::size_t latch, std::uint8_t arrivals);
    void notify(std::size_t condition, std::size_t max);
    void set(std::size_t event);
    void release(std::size_t semaphore, std::size_t permits);
    void unlock(std::size_t lock);
    void stop(std::size_t victim);
    result wake(std::size_t word, std::size_t max);
    bool take_event(std::size_t event);
    bool take_permits(const call& what);
    void park(std::size_t actor);
    std::size_t pop(std::size_t object);
    void leave(std::size_t actor);

    std::array<actor_state, actors> actors_;
    std::array<bool, objects> on_{};  // events: set; locks: locked; channels: closed; latches: open
    std::array<std::size_t, first_word - first_semaphore> permits_{};
    std::array<std::uint8_t, first_channel - first_word> values_{};
    std::array<std::vector<std::uint8_t>, first_latch - first_channel> items_;  // oldest first
    std::array<std::uint8_t, first_condition - first_latch> missing_ = expected_arrivals;
    std::array<std::vector<std::size_t>, objects> queues_;  // the actors that wait, oldest first
};

}  // namespace fuzz
