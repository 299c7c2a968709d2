#include "reference.hpp"

#include <algorithm>

namespace fuzz {
namespace {

bool is_token(std::size_t event) { return event < first_gate; }

}  // namespace

void world::begin(const call& what) { actors_[what.actor] = {phase::called, what, result::none, false}; }

std::set<world> world::outcomes() const {
    std::set<world> visited;
    std::set<world> quiet;
    collect(visited, quiet);
    return quiet;
}

void world::collect(std::set<world>& visited, std::set<world>& quiet) const {
    if (!visited.insert(*this).second) return;
    if (is_quiet()) quiet.insert(*this);
    for (std::size_t i = 0; i < actors; ++i) {
        const actor_state& each = actors_[i];
        world next = *this;
        if (each.now == phase::called || each.now == phase::retrying) {
            next.step(i);
        } else if (each.now == phase::parked && each.doing.until == patience::little) {
            next.expire(i);
        } else {
            continue;
        }
        next.collect(visited, quiet);
    }
}

bool world::is_quiet() const {
    return std::ranges::all_of(actors_, [](const actor_state& each) {
        return each.now == phase::idle ||
               (each.now == phase::parked && each.doing.until == patience::endless);
    });
}

void world::step(std::size_t actor) {
    const call doing = actors_[actor].doing;
    switch (doing.what) {
        case verb::wait: wait_for_event(actor); return;
        case verb::wait_on_address: wait_for_value(actor); return;
        case verb::lock: take_lock(actor); return;
        case verb::set: set(doing.object); break;
        case verb::reset: on_[doing.object] = false; break;
        case verb::store: values_[doing.object - first_word] = doing.value; break;
        case verb::unlock: unlock(doing.object); break;
        case verb::stop: stop(doing.victim); break;
        case verb::is_set: finish(actor, on_[doing.object] ? result::yes : result::no); return;
        case verb::try_wait: finish(actor, take_event(doing.object) ? result::yes : result::no); return;
        case verb::wake_one: finish(actor, wake(doing.object, 1)); return;
        case verb::wake_two: finish(actor, wake(doing.object, 2)); return;
        case verb::wake_all: finish(actor, wake(doing.object, actors)); return;
        case verb::try_lock:
            finish(actor, on_[doing.object] ? result::no : result::yes);
            on_[doing.object] = true;
            return;
    }
    finish(actor, result::none);
}

result world::finish(std::size_t actor, result came) {
    actors_[actor].now = phase::idle;
    return actors_[actor].came = came;
}

void world::expire(std::size_t actor) {
    leave(actor);
    const call& doing = actors_[actor].doing;
    if (doing.what != verb::lock) {
        finish(actor, result::timed_out);
    } else if (on_[doing.object]) {
        finish(actor, result::no);
    } else {  // looks one last time
        take_lock(actor);
    }
}

// A set event counts first, then a stop, then the deadline.
void world::wait_for_event(std::size_t actor) {
    const actor_state& self = actors_[actor];
    if (take_event(self.doing.object)) {
        finish(actor, result::signaled);
    } else if (self.stop_requested) {
        finish(actor, result::stopped);
    } else if (self.doing.until == patience::none) {
        finish(actor, result::timed_out);
    } else {
        park(actor);
    }
}

void world::wait_for_value(std::size_t actor) {
    const actor_state& self = actors_[actor];
    if (values_[self.doing.object - first_word] != self.doing.value) {
        finish(actor, result::differed);
    } else if (self.stop_requested) {
        finish(actor, result::stopped);
    } else if (self.doing.until == patience::none) {
        finish(actor, result::timed_out);
    } else {
        park(actor);
    }
}

void world::take_lock(std::size_t actor) {
    actor_state& self = actors_[actor];
    const call& doing = self.doing;
    if (!on_[doing.object]) {
        on_[doing.object] = true;
        leave(actor);
        finish(actor, result::yes);
    } else if (doing.until == patience::none) {
        finish(actor, result::no);
    } else if (self.now == phase::retrying) {
        self.now = phase::parked;  // it has kept its place in the queue
    } else {
        park(actor);
    }
}

bool world::take_event(std::size_t event) {
    const bool there = on_[event];
    if (is_token(event)) on_[event] = false;
    return there;
}

void world::set(std::size_t event) {
    if (is_token(event) && !queues_[event].empty()) {
        finish(pop(event), result::signaled);
        return;
    }
    on_[event] = true;
    while (!queues_[event].empty()) finish(pop(event), result::signaled);
}

// Locks are not fair: the actor that has waited longest is told, and competes like every other. It keeps its place in
// the queue, and nobody else is told before it has tried.
void world::unlock(std::size_t lock) {
    on_[lock] = false;
    if (!queues_[lock].empty()) actors_[queues_[lock].front()].now = phase::retrying;
}

void world::stop(std::size_t victim) {
    actor_state& stopped = actors_[victim];
    stopped.stop_requested = true;
    if (stopped.now == phase::parked && stopped.doing.stoppable) {
        leave(victim);
        finish(victim, result::stopped);
    }
}

result world::wake(std::size_t word, std::size_t most) {
    std::size_t count = 0;
    for (; count != most && !queues_[word].empty(); ++count) finish(pop(word), result::woken);
    return released(count);
}

void world::park(std::size_t actor) {
    actors_[actor].now = phase::parked;
    queues_[actors_[actor].doing.object].push_back(actor);
}

std::size_t world::pop(std::size_t object) {
    const std::size_t oldest = queues_[object].front();
    queues_[object].erase(queues_[object].begin());
    return oldest;
}

void world::leave(std::size_t actor) { std::erase(queues_[actors_[actor].doing.object], actor); }

}  // namespace fuzz
