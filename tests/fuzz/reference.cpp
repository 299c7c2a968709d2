// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <algorithm>
#include <utility>

namespace fuzz {
namespace {

bool is_token(std::size_t event) { return event < first_gate; }

// Whether an actor has a step of its own to take.
bool is_under_way(phase now) { return now != phase::idle && now != phase::parked; }

}  // namespace

void world::begin(const call& what) { actors_[what.actor] = {phase::called, what, result::none, false, 0}; }

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
        if (is_under_way(each.now)) {
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
    switch (doing.action) {
        case verb::wait: wait_for_event(actor); return;
        case verb::acquire: acquire(actor); return;
        case verb::wait_on_address: wait_for_value(actor); return;
        case verb::lock: take_lock(actor); return;
        case verb::send: send(actor); return;
        case verb::receive: receive(actor); return;
        case verb::receive_either: receive_either(actor); return;
        case verb::wait_notified: wait_notified(actor); return;
        case verb::set: set(doing.object); break;
        case verb::reset: on_[doing.object] = false; break;
        case verb::release: release(doing.object, doing.permits()); break;
        case verb::store: values_[doing.object - first_word] = doing.value; break;
        case verb::unlock: unlock(doing.object); break;
        case verb::stop: stop(doing.victim); break;
        case verb::count_down: count_down(doing.object, doing.arrivals()); break;
        case verb::notify_one: notify(doing.object, 1); break;
        case verb::notify_all: notify(doing.object, actors); break;
        case verb::close: finish(actor, close(doing.object) ? result::yes : result::no); return;
        case verb::try_send:
            if (!try_send(actor)) finish(actor, result::no);
            return;
        case verb::try_receive:
            if (!try_receive(actor, doing.object)) finish(actor, result::no);
            return;
        case verb::is_set: finish(actor, on_[doing.object] ? result::yes : result::no); return;
        case verb::try_wait: finish(actor, take_event(doing.object) ? result::yes : result::no); return;
        case verb::try_acquire: finish(actor, take_permits(doing) ? result::yes : result::no); return;
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
    if (doing.action != verb::lock) {
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

// A call that only tries collects nothing. A wait takes the permits that are there, and collects the others.
void world::acquire(std::size_t actor) {
    actor_state& self = actors_[actor];
    if (take_permits(self.doing)) {
        finish(actor, result::signaled);
    } else if (self.stop_requested) {
        finish(actor, result::stopped);
    } else if (self.doing.until == patience::none) {
        finish(actor, result::timed_out);
    } else {
        self.collected = std::exchange(permits_[self.doing.object - first_semaphore], 0);
        park(actor);
    }
}

// A stop ends a wait before its deadline does.
bool world::ends_at_once(std::size_t actor) {
    const actor_state& self = actors_[actor];
    if (self.stop_requested && self.doing.stoppable) {
        finish(actor, result::stopped);
    } else if (self.doing.until == patience::none) {
        finish(actor, result::timed_out);
    } else {
        return false;
    }
    return true;
}

void world::end_or_park(std::size_t actor) {
    if (!ends_at_once(actor)) park(actor);
}

void world::send(std::size_t actor) {
    if (!try_send(actor)) end_or_park(actor);
}

void world::receive(std::size_t actor) {
    if (!try_receive(actor, actors_[actor].doing.object)) end_or_park(actor);
}

void world::receive_either(std::size_t actor) {
    actor_state& self = actors_[actor];
    switch (self.now) {
        case phase::called:
            if (!try_receive(actor, first_channel)) self.now = phase::found_first_empty;
            return;
        case phase::found_first_empty:
            if (!try_receive(actor, first_channel + 1) && !ends_at_once(actor))
                self.now = phase::queues_at_first;
            return;
        case phase::queues_at_first:
            if (try_receive(actor, first_channel)) return;
            queues_[first_channel].push_back(actor);
            self.now = phase::queues_at_second;
            return;
        default: break;
    }
    std::erase(queues_[first_channel], actor);
    if (try_receive(actor, first_channel + 1) || (self.stop_requested && ends_at_once(actor))) return;
    park(actor);
    queues_[first_channel + 1].push_back(actor);
}

// There is nothing that it could find at once: the condition has no state.
void world::wait_notified(std::size_t actor) { end_or_park(actor); }

// At a channel, either senders wait or receivers do.
bool world::try_send(std::size_t actor) {
    const call doing = actors_[actor].doing;
    auto& items = items_[doing.object - first_channel];
    const auto& waiting = queues_[doing.object];
    const bool receivers_wait = !waiting.empty() && actors_[waiting.front()].doing.action != verb::send;
    if (on_[doing.object]) {
        finish(actor, result::closed);
        return true;
    }
    if (receivers_wait) {
        const std::size_t oldest = waiting.front();
        end_wait(oldest, received(doing.value, doing.object != actors_[oldest].doing.object));
    } else if (items.size() < capacities[doing.object - first_channel]) {
        items.push_back(doing.value);
    } else {
        return false;
    }
    finish(actor, result::yes);
    return true;
}

bool world::try_receive(std::size_t actor, std::size_t channel) {
    auto& items = items_[channel - first_channel];
    auto& waiting = queues_[channel];
    if (!waiting.empty() && actors_[waiting.front()].doing.action == verb::send) {
        const std::size_t oldest = waiting.front();
        items.push_back(actors_[oldest].doing.value);
        end_wait(oldest, result::yes);
    }
    if (!items.empty()) {
        finish(actor, received(items.front(), channel != actors_[actor].doing.object));
        items.erase(items.begin());
    } else if (on_[channel]) {
        finish(actor, result::closed);
    } else {
        return false;
    }
    return true;
}

void world::end_wait(std::size_t actor, result came) {
    leave(actor);
    finish(actor, came);
}

bool world::close(std::size_t channel) {
    if (on_[channel]) return false;
    on_[channel] = true;
    while (!queues_[channel].empty()) end_wait(queues_[channel].front(), result::closed);
    return true;
}

void world::count_down(std::size_t latch, std::uint8_t arrivals) {
    std::uint8_t& missing = missing_[latch - first_latch];
    missing = static_cast<std::uint8_t>(missing - arrivals);
    if (missing == 0) set(latch);
}

void world::notify(std::size_t condition, std::size_t max) {
    for (; max != 0 && !queues_[condition].empty(); --max) finish(pop(condition), result::signaled);
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
    } else {
        leave(actor);  // if it was woken for nothing: it goes to the end of the queue
        park(actor);
    }
}

bool world::take_event(std::size_t event) {
    const bool there = on_[event];
    if (is_token(event)) on_[event] = false;
    return there;
}

bool world::take_permits(const call& what) {
    std::size_t& there = permits_[what.object - first_semaphore];
    if (there < what.permits()) return false;
    there -= what.permits();
    return true;
}

// Each permit goes to the actor that has waited longest; the count gets what nobody waits for.
void world::release(std::size_t semaphore, std::size_t permits) {
    for (; permits != 0 && !queues_[semaphore].empty(); --permits) {
        actor_state& oldest = actors_[queues_[semaphore].front()];
        if (++oldest.collected == oldest.doing.permits()) finish(pop(semaphore), result::signaled);
    }
    permits_[semaphore - first_semaphore] += permits;
}

void world::set(std::size_t event) {
    if (is_token(event) && !queues_[event].empty()) {
        finish(pop(event), result::signaled);
        return;
    }
    on_[event] = true;
    while (!queues_[event].empty()) finish(pop(event), result::signaled);
}

// Locks are not fair: the first actor in the queue is told, and competes like every other. Nobody else is told before
// that actor has tried. If it fails, it goes to the end of the queue.
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

result world::wake(std::size_t word, std::size_t max) {
    std::size_t count = 0;
    for (; count != max && !queues_[word].empty(); ++count) finish(pop(word), result::woken);
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

void world::leave(std::size_t actor) {
    actor_state& self = actors_[actor];
    std::erase(queues_[self.doing.object], actor);
    if (self.doing.action == verb::receive_either) std::erase(queues_[first_channel + 1], actor);
    if (self.doing.action == verb::acquire) release(self.doing.object, std::exchange(self.collected, 0));
}

}  // namespace fuzz
