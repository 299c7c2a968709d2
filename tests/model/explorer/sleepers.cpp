// SPDX-License-Identifier: Apache-2.0
// What the running thread does besides atomics: sleeping and waking, the lives of objects, plain data.
#include "engine.hpp"

namespace tocsin::model {

// --- sleeping ---

std::int32_t engine::queue_of(const void* address) {
    for (const queue_name& q : queues_)
        if (q.address == address) return q.number;
    const auto number = static_cast<std::int32_t>(queues_.size());
    queues_.push_back({address, number});
    return number;
}

// One step compares the word's newest value and queues the thread. Neither this step nor the wake tells the thread
// anything about memory.
wake_reason engine::futex_wait(object o, word expected, bool may_time_out, bool& slept, source where) {
    footprint f{.queue = queue_of(o.address)};
    const int x = enter(o, f, "futex_wait", where);
    const word now = memory_.at(x).newest().value;
    slept = now == expected;
    if (slept) {
        sleep(o, expected, may_time_out, f, where);
        return me().reason;
    }
    f.queue = -1;
    executed(f);
    if (trace_.on)
        tell("futex_wait", o.address, tracer::value(now) + ", not " + tracer::value(expected), "",
             "returns at once", where);
    end_of_step();
    return wake_reason::woken;
}

void engine::sleep(object o, word expected, bool may_time_out, const footprint& f, source where) {
    executed(f);
    model_thread& t = me();
    set_state(running_, thread_state::sleeping);
    t.sleeps_on = o.address;
    t.may_time_out = may_time_out;
    t.slept_at = steps_;
    t.slept_for = expected;
    sleepers_.push_back({o.address, running_});
    if (trace_.on)
        tell("futex_wait", o.address, tracer::value(expected), "",
             may_time_out ? "sleeps, with a deadline" : "sleeps", where);
    end_of_step();
    announce({.queue = f.queue}, "sleeping");
    if ((in(thread_state::sleeping) & mask_of(running_)) != 0) {
        leave_sleep(f);
    } else {
        t.reason = wake_reason::woken;
        executed({});
    }
    if (trace_.on) {
        constexpr const char* reasons[] = {"woken", "TIMED OUT", "SPURIOUS RETURN"};
        tell("futex_wait", o.address, "", "", reasons[static_cast<int>(t.reason)], where);
    }
    end_of_step();
}

void engine::leave_sleep(const footprint& f) {
    model_thread& t = me();
    const bool late = t.may_time_out && (t.timeouts_left > 0 || now_.ready == 0);
    const bool spurious = t.spurious_left > 0;
    const bool times_out = late && (!spurious || pick(2, choice::exit) == 0);
    executed({.queue = f.queue, .last_resort = times_out && t.timeouts_left == 0});
    if (times_out && t.timeouts_left > 0) --t.timeouts_left;
    if (!times_out) --t.spurious_left;
    t.reason = times_out ? wake_reason::timed_out : wake_reason::spurious;
    set_state(running_, thread_state::ready);
    std::erase_if(sleepers_, [this](const sleeper& s) { return s.thread == running_; });
}

unsigned engine::futex_wake(const void* address, unsigned count, source where) {
    const footprint f{.queue = queue_of(address)};
    announce(f, "futex_wake");
    executed(f);
    unsigned woken = 0;
    std::string names;
    for (std::size_t i = 0; i < sleepers_.size() && woken < count;) {
        if (sleepers_[i].address != address) {
            ++i;
            continue;
        }
        if (trace_.on) names += (woken ? ", " : "") + thread_at(sleepers_[i].thread).name;
        release(i);
        ++woken;
    }
    if (trace_.on) tell("futex_wake", address, "", "", woken ? "wakes " + names : "nobody sleeps", where);
    end_of_step();
    return woken;
}

void engine::release(std::size_t index) {
    const int sleeping = sleepers_[index].thread;
    sleepers_.erase(sleepers_.begin() + static_cast<std::ptrdiff_t>(index));
    set_state(sleeping, thread_state::ready);
    intentions_.next[static_cast<std::size_t>(sleeping)] = {};
    chooser_->withdrawn(sleeping);
    chooser_->edge(running_, sleeping);
}

// --- objects ---

void engine::constructed(object o, word value) {
    if (trace_.on) trace_.forget(o.address);
    memory_.construct(o, value, &me().memory);
}

void engine::destroyed(object o) {
    if (const char* wrong = memory_.destroy(o.address, me().memory); wrong != nullptr)
        fail(o.address, wrong, {});
}

void engine::forgotten(object o) { memory_.forget(o.address); }

void engine::cell_constructed(object o) {
    if (trace_.on) trace_.forget(o.address);
    memory_.construct_cell(o, &me().memory);
}

void engine::cell_destroyed(object o) {
    if (const char* wrong = memory_.write_cell(o, me().memory, true); wrong != nullptr)
        fail(o.address, wrong, {});
}

void engine::cell_read(object o, source where) {
    if (trace_.on) tell("plain read", o.address, "", "", "", where);
    if (const char* wrong = memory_.read_cell(o, me().memory); wrong != nullptr)
        fail(o.address, wrong, where);
}

void engine::cell_written(object o, source where) {
    if (trace_.on) tell("plain write", o.address, "", "", "", where);
    if (const char* wrong = memory_.write_cell(o, me().memory); wrong != nullptr)
        fail(o.address, wrong, where);
}

// --- the test's own ---

unsigned engine::choose(unsigned count, std::string_view what, source where) {
    const unsigned taken = pick(count, choice::user);
    if (trace_.on) tell("choice", nullptr, std::to_string(taken), "", std::string(what), where);
    return taken;
}

void engine::name(const void* address, std::string_view text) {
    if (trace_.on) trace_.name(address, text);
}

void engine::note(std::string_view text, source where) {
    if (trace_.on) tell("note", nullptr, "", "", std::string(text), where);
}

}  // namespace tocsin::model
