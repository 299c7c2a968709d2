// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include "facts.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

namespace fuzz {
namespace {

using std::chrono::steady_clock;

constexpr unsigned first_bit = 2;
constexpr unsigned second_bit = 9;
constexpr std::chrono::nanoseconds moment = std::chrono::microseconds(20);

result to_result(bool yes) { return yes ? result::yes : result::no; }

result to_result(tocsin::wait_status how) {
    switch (how) {
        case tocsin::wait_status::signaled: return result::signaled;
        case tocsin::wait_status::timed_out: return result::timed_out;
        default: return result::stopped;
    }
}

result to_result(tocsin::address_status how) {
    switch (how) {
        case tocsin::address_status::woken: return result::woken;
        case tocsin::address_status::differed: return result::differed;
        case tocsin::address_status::timed_out: return result::timed_out;
        default: return result::stopped;
    }
}

result to_result(tocsin::channel_status how) {
    switch (how) {
        case tocsin::channel_status::done: return result::yes;
        case tocsin::channel_status::closed: return result::closed;
        case tocsin::channel_status::not_ready: return result::no;
        case tocsin::channel_status::timed_out: return result::timed_out;
        default: return result::stopped;
    }
}

result to_result(const tocsin::received<std::uint8_t>& what) {
    return what ? received(*what, false) : to_result(what.status());
}

result to_result(tocsin::cv_status how) {
    return how == tocsin::cv_status::timeout ? result::timed_out : result::signaled;
}

result to_result(result how) { return how; }

template <class Receive>
result received_by(Receive& from, bool is_second) {
    return from ? received(*from, is_second) : to_result(from.status());
}

tocsin::deadline deadline_of(patience until) {
    switch (until) {
        case patience::none: return std::chrono::seconds(0);
        case patience::little: return moment;
        default: return tocsin::deadline::never();
    }
}

}  // namespace

std::size_t watched_channel::waiting() {
    const both_locked held(*this);
    std::size_t count = 0;
    for (const auto* each_side : {&sending_, &receiving_}) {
        const auto& list = each_side->waiting;
        for (const auto* each = list.first(); each != nullptr; each = list.next(*each)) ++count;
    }
    return count;
}

const void* things::address(std::size_t object) const {
    if (object < first_gate) return &tokens[object];
    if (object < first_semaphore) return &gates[object - first_gate];
    if (object < first_word) return &semaphores[object - first_semaphore];
    if (object < first_word + 2) return &bytes[object - first_word];
    if (object < first_channel) return &word;
    if (is_latch(object)) return &latches[object - first_latch];
    if (object == first_condition) return &condition;
    return object == first_lock ? static_cast<const void*>(&lock) : &bits;
}

std::size_t things::waiting(std::size_t object) {
    if (object >= first_channel && object < first_latch) return channels[object - first_channel].waiting();
    return tocsin::waiting_on(address(object));
}

bool things::is_set(std::size_t event) const {
    if (is_latch(event)) return latches[event - first_latch].try_wait();
    return event < first_gate ? tokens[event].is_set() : gates[event - first_gate].is_set();
}

std::uint8_t things::value(std::size_t which) const {
    return which < first_word + 2 ? bytes[which - first_word].load() : static_cast<std::uint8_t>(word.load());
}

bool things::is_locked(std::size_t which) const {
    if (which == first_lock)
        return (reinterpret_cast<const std::atomic<std::uint8_t>&>(lock).load() & 1) != 0;
    return (bits.load() >> (which == first_lock + 1 ? first_bit : second_bit) & 1) != 0;
}

stage::stage() {
    for (player& each : actors_) each.thread = std::thread([this, &each] { live(each); });
}

stage::~stage() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    told_.notify_all();
    for (player& each : actors_) each.thread.join();
}

void stage::clear() { things_ = std::make_unique<things>(); }

void stage::live(player& self) {
    for (;;) {
        std::function<result()> task;
        {
            std::unique_lock lock(mutex_);
            told_.wait(lock, [&] { return over_ || self.task; });
            if (over_) return;
            task = std::exchange(self.task, nullptr);
        }
        self.came = task();
        self.idle.store(true);
    }
}

void stage::give(player& to, std::function<result()> task) {
    to.idle.store(false);
    const std::lock_guard lock(mutex_);
    to.task = std::move(task);
    told_.notify_all();
}

bool stage::play(const std::vector<call>& calls) {
    support::starting_line line(static_cast<int>(calls.size()));
    for (const call& each : calls) {
        actors_[each.actor].until = each.until;
        actors_[each.actor].stoppable = each.stoppable;
        actors_[each.actor].object = each.object;
        actors_[each.actor].queues = each.action == verb::receive_either ? 2 : 1;
        actors_[each.actor].stop = std::stop_source();
    }
    std::atomic<std::size_t> off{0};
    for (const call& each : calls) {
        give(actors_[each.actor], [this, each, &line, &off] {
            line.arrive();
            off.fetch_add(1);
            const auto begin = steady_clock::now();
            while (steady_clock::now() - begin < std::chrono::microseconds(each.delay)) {
            }
            return perform(each);
        });
    }
    support::until("all calls to have begun", [&] { return off.load() == calls.size(); });
    return comes_to_rest();
}

void stage::hand_over(std::size_t waiter, std::size_t setter, bool gate) {
    std::atomic<void*> shared{nullptr};
    const auto wait_and_destroy = [&shared]<class Event>(std::unique_ptr<Event> event) {
        shared.store(event.get(), std::memory_order_release);
        event->wait();
        event.reset();
        return result::none;
    };
    const auto set = [&shared]<class Event>(std::unique_ptr<Event>) {
        void* seen = nullptr;
        while ((seen = shared.load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
        static_cast<Event*>(seen)->set();
        return result::none;
    };
    actors_[waiter].until = actors_[setter].until = patience::none;
    const auto run = [gate](const auto& part) {
        return gate ? part(std::make_unique<tocsin::manual_reset_event>())
                    : part(std::make_unique<tocsin::auto_reset_event>());
    };
    give(actors_[waiter], [&] { return run(wait_and_destroy); });
    give(actors_[setter], [&] { return run(set); });
    support::until("a hand-over to end", [&] { return is_idle(waiter) && is_idle(setter); });
}

// An actor that parks releases no other in the same call, except that it gives up the condition's lock. So if as many
// actors are parked as have not returned, all of those are parked and nothing changes any more. A wait for two channels
// counts twice, once in each queue; the channel that ends the wait takes it off that channel's own queue at once. A
// stopped wait stays in its queue until its thread runs, so an actor whose wait may end by a stop or a deadline must
// have returned. A wait for a lock that an unlock() has told stays in its queue, too, so a lock with waiters must be
// locked.
bool stage::is_quiet() const {
    std::size_t busy = 0;
    for (const player& each : actors_) {
        if (each.idle.load()) continue;
        if (each.until != patience::endless || (each.stoppable && each.stop.stop_requested())) return false;
        if (each.object >= first_lock && !things_->is_locked(each.object)) return false;
        busy += each.queues;
    }
    std::size_t parked = 0;
    for (std::size_t i = 0; i < addresses; ++i) parked += things_->waiting(i);
    return parked == busy;
}

bool stage::comes_to_rest() const {
    const auto begin = steady_clock::now();
    for (int looks = 0; !is_quiet(); ++looks) {
        if (looks < 200) {
            std::this_thread::yield();
            continue;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (steady_clock::now() - begin > support::patience()) return false;
    }
    return true;
}

result stage::perform(const call& what) {
    if (what.action == verb::stop) {
        actors_[what.victim].stop.request_stop();
        return result::none;
    }
    switch (what.object) {
        case 0:
        case 1: return on_event(things_->tokens[what.object], what);
        case 2:
        case 3: return on_event(things_->gates[what.object - first_gate], what);
        case 4:
        case 5: return on_semaphore(things_->semaphores[what.object - first_semaphore], what);
        case 6:
        case 7: return on_word(things_->bytes[what.object - first_word], what);
        case 8: return on_word(things_->word, what);
        case 9:
        case 10:
        case 11: return on_channel(things_->channels[what.object - first_channel], what);
        case 12:
        case 13: return on_latch(what.object - first_latch, what);
        case 14: return on_condition(what);
        case 15: return on_lock(things_->lock, what);
        case 16: return on_lock(tocsin::bit_lock(things_->bits, first_bit), what);
        default: return on_lock(tocsin::bit_lock(things_->bits, second_bit), what);
    }
}

template <class Call>
result stage::not_early(const call& what, Call wait) {
    const auto begin = steady_clock::now();
    const result how = to_result(wait());
    const bool gave_up = how == result::timed_out || how == result::no;
    if (what.until == patience::little && gave_up && steady_clock::now() - begin < moment) early_.store(true);
    return how;
}

// The actor's thread sleeps until the operation's function is called, in whichever thread ends the wait.
template <class Source>
tocsin::wait_status stage::by_operation(Source& from, const call& what) {
    player& self = actors_[what.actor];
    tocsin::limits how;
    if (what.until == patience::none) how.until = std::chrono::seconds(0);
    if (what.until == patience::little) how.until = moment;
    const std::stop_token stop = self.stop.get_token();
    if (what.stoppable) how.stop = stop;
    std::optional<tocsin::wait_status> ended;  // under the mutex
    auto wait = tocsin::any_operation(
        [&](tocsin::any_result result) noexcept {
            const std::lock_guard lock(self.mutex);
            ended = result.status;
            self.ended.notify_one();
        },
        how, from);
    wait.start();
    std::unique_lock lock(self.mutex);
    self.ended.wait(lock, [&] { return ended.has_value(); });
    return *ended;
}

template <class Event>
result stage::on_event(Event& event, const call& what) {
    switch (what.action) {
        case verb::set: event.set(); return result::none;
        case verb::reset: event.reset(); return result::none;
        case verb::is_set: return to_result(event.is_set());
        case verb::try_wait: return to_result(event.try_wait());
        default: break;
    }
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    return not_early(what, [&] {
        if (what.by_operation) return by_operation(event, what);
        switch (what.until) {
            case patience::none: {
                if (what.stoppable) return event.wait_for(std::chrono::nanoseconds(0), stop);
                return event.wait_until(steady_clock::now() - std::chrono::seconds(what.flavour));
            }
            case patience::little: {
                if (what.stoppable) return event.wait_for(moment, stop);
                if (what.flavour == 0) return event.wait_until(std::chrono::system_clock::now() + 3 * moment);
                if (what.flavour == 1) return event.wait_for(moment, tocsin::spin_policy::none());
                return event.wait_until(steady_clock::now() + moment);
            }
            default: {
                if (what.stoppable) return event.wait(stop);
                if (what.flavour == 0) return event.wait_for(std::chrono::hours(1));
                return event.wait(), tocsin::wait_status::signaled;
            }
        }
    });
}

result stage::on_semaphore(tocsin::counting_semaphore<>& semaphore, const call& what) {
    const auto permits = static_cast<std::ptrdiff_t>(what.permits());
    if (what.action == verb::release) return semaphore.release(permits), result::none;
    if (what.action == verb::try_acquire) return to_result(semaphore.try_acquire(permits));
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    const auto taken = [](bool yes) {
        return yes ? tocsin::wait_status::signaled : tocsin::wait_status::timed_out;
    };
    return not_early(what, [&] {
        if (what.by_operation) return by_operation(semaphore, what);
        switch (what.until) {
            case patience::none: {
                if (what.stoppable) return semaphore.try_acquire_for(permits, std::chrono::seconds(0), stop);
                return taken(semaphore.try_acquire_for(permits, std::chrono::seconds(0)));
            }
            case patience::little: {
                if (what.stoppable) return semaphore.try_acquire_for(permits, moment, stop);
                if (what.flavour == 0)
                    return taken(semaphore.try_acquire_until(permits, steady_clock::now() + moment));
                return taken(semaphore.try_acquire_for(permits, moment, tocsin::spin_policy::none()));
            }
            default: {
                if (what.stoppable) return semaphore.acquire(permits, stop);
                return semaphore.acquire(permits), tocsin::wait_status::signaled;
            }
        }
    });
}

template <class Word>
result stage::on_word(std::atomic<Word>& word, const call& what) {
    switch (what.action) {
        case verb::store: word.store(what.value); return result::none;
        case verb::wake_one: return released(tocsin::wake_by_address_one(&word));
        case verb::wake_two: return released(tocsin::wake_by_address_n(&word, 2));
        case verb::wake_all: return released(tocsin::wake_by_address_all(&word));
        default: break;
    }
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    return not_early(what, [&] {
        const tocsin::deadline until = deadline_of(what.until);
        return what.stoppable ? tocsin::wait_on_address(&word, Word{what.value}, until, stop)
                              : tocsin::wait_on_address(&word, Word{what.value}, until);
    });
}

result stage::on_channel(watched_channel& channel, const call& what) {
    switch (what.action) {
        case verb::try_send: return to_result(channel.try_send(what.value));
        case verb::try_receive: return to_result(channel.try_receive());
        case verb::close: return to_result(channel.close());
        case verb::send: return not_early(what, [&] { return send(channel, what); });
        case verb::receive: return not_early(what, [&] { return receive(channel, what); });
        default: return not_early(what, [&] { return receive_either(what); });
    }
}

// Of the flavours, 1 is a wait for the operation as a source.
result stage::send(watched_channel& channel, const call& what) {
    std::uint8_t item = what.value;
    if (what.flavour == 1) {
        auto sending = channel.sending(item);
        const tocsin::wait_status how = wait_for_any(what, sending).status;
        return how == tocsin::wait_status::signaled ? to_result(sending.status()) : to_result(how);
    }
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    const tocsin::deadline until = deadline_of(what.until);
    if (what.until == patience::endless)
        return to_result(what.stoppable ? channel.send(item, stop) : channel.send(item));
    return to_result(what.stoppable ? channel.send_until(item, until, stop)
                                    : channel.send_until(item, until));
}

result stage::receive(watched_channel& channel, const call& what) {
    if (what.flavour == 1) {
        auto receiving = channel.receiving();
        const tocsin::wait_status how = wait_for_any(what, receiving).status;
        return how == tocsin::wait_status::signaled ? received_by(receiving, false) : to_result(how);
    }
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    const tocsin::deadline until = deadline_of(what.until);
    if (what.until == patience::endless)
        return to_result(what.stoppable ? channel.receive(stop) : channel.receive());
    return to_result(what.stoppable ? channel.receive_until(until, stop) : channel.receive_until(until));
}

result stage::receive_either(const call& what) {
    auto first = things_->channels[0].receiving();
    auto second = things_->channels[1].receiving();
    const tocsin::any_result how = wait_for_any(what, first, second);
    if (how.status != tocsin::wait_status::signaled) return to_result(how.status);
    return how.index == 0 ? received_by(first, false) : received_by(second, true);
}

template <class... Sources>
tocsin::any_result stage::wait_for_any(const call& what, Sources&... sources) {
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    const tocsin::deadline until = deadline_of(what.until);
    return what.stoppable ? tocsin::wait_any({.until = until, .stop = stop}, sources...)
                          : tocsin::wait_any({.until = until}, sources...);
}

result stage::on_latch(std::size_t number, const call& what) {
    tocsin::latch& latch = things_->latches[number];
    if (what.action == verb::count_down) {
        things_->missing[number].fetch_sub(what.arrivals());
        latch.count_down(what.arrivals());
        return result::none;
    }
    if (what.action == verb::try_wait) return to_result(latch.try_wait());
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    return not_early(what, [&] {
        if (what.flavour == 1) return wait_for_any(what, latch).status;
        const tocsin::deadline until = deadline_of(what.until);
        return what.stoppable ? latch.wait_until(until, stop) : latch.wait_until(until);
    });
}

// The lock is free whenever no actor is on its way into a wait or out of one.
result stage::on_condition(const call& what) {
    if (what.action == verb::notify_one) return things_->condition.notify_one(), result::none;
    if (what.action == verb::notify_all) return things_->condition.notify_all(), result::none;
    auto& lock = things_->condition_lock;
    const std::lock_guard held(lock);
    const std::stop_token stop = actors_[what.actor].stop.get_token();
    return not_early(what, [&] {
        const tocsin::deadline until = deadline_of(what.until);
        if (!what.stoppable && what.flavour == 1)
            return to_result(things_->condition.wait_any(lock, {.until = until}, things_->never_set).status);
        if (!what.stoppable) return to_result(things_->condition.wait_until(lock, until));
        if (what.flavour == 1)
            return to_result(
                things_->condition.wait_any(lock, {.until = until, .stop = stop}, things_->never_set).status);
        return to_result(things_->condition.wait_until(lock, until, stop));
    });
}

template <class Lock>
result stage::on_lock(Lock&& lock, const call& what) {
    switch (what.action) {
        case verb::try_lock: return to_result(lock.try_lock());
        case verb::unlock: lock.unlock(); return result::none;
        default: break;
    }
    return not_early(what, [&] {
        if (what.until == patience::none) return lock.try_lock_for(std::chrono::seconds(0));
        if (what.until == patience::little) return lock.try_lock_for(moment);
        return lock.lock(), true;
    });
}

void stage::release_all() {
    for (player& each : actors_) each.stop.request_stop();
    // Only this thread unlocks from here on, because the holder of a lock that can't be taken will not unlock it.
    const auto free = [](auto&& lock) {
        (void)lock.try_lock();
        lock.unlock();
    };
    support::until("everybody to be released", [&] {
        for (auto& each : things_->tokens) each.set();
        for (auto& each : things_->gates) each.set();
        for (auto& each : things_->semaphores) each.release(actors);
        for (auto& each : things_->bytes) tocsin::wake_by_address_all(&each);
        tocsin::wake_by_address_all(&things_->word);
        for (auto& each : things_->channels) each.close();
        for (std::size_t i = 0; i < things_->latches.size(); ++i)
            things_->latches[i].count_down(things_->missing[i].exchange(0));
        things_->condition.notify_all();
        free(things_->lock);
        free(tocsin::bit_lock(things_->bits, first_bit));
        free(tocsin::bit_lock(things_->bits, second_bit));
        bool all = true;
        for (std::size_t i = 0; i < actors; ++i) all = all && is_idle(i);
        return all;
    });
    early_.store(false);
}

}  // namespace fuzz
