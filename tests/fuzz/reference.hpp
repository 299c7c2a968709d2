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
};

struct actor_state {
    phase now = phase::idle;
    call doing;
    result came = result::none;
    bool stop_requested = false;

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
    void take_lock(std::size_t actor);
    void set(std::size_t event);
    void unlock(std::size_t lock);
    void stop(std::size_t victim);
    result wake(std::size_t word, std::size_t most);
    bool take_event(std::size_t event);
    void park(std::size_t actor);
    std::size_t pop(std::size_t object);
    void leave(std::size_t actor);

    std::array<actor_state, actors> actors_;
    std::array<bool, objects> on_{};  // events: set; locks: locked
    std::array<std::uint8_t, first_lock - first_word> values_{};
    std::array<std::vector<std::size_t>, objects> queues_;  // the actors that wait, oldest first
};

}  // namespace fuzz
