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
    t.sleeps_on = o.address;
    t.on_several = false;
    sleepers_.push_back({o.address, running_});
    fall_asleep(may_time_out, expected, where);
    announce({.queue = f.queue}, "sleeping");
    if ((in(thread_state::sleeping) & mask_of(running_)) != 0) {
        leave_sleep(f);
    } else {
        t.reason = wake_reason::woken;
        executed({});
    }
    tell_why_awake(o.address, where);
    end_of_step();
}

void engine::fall_asleep(bool may_time_out, word expected, source where) {
    model_thread& t = me();
    set_state(running_, thread_state::sleeping);
    t.may_time_out = may_time_out;
    t.slept_at = steps_;
    t.slept_for = expected;
    if (trace_.on)
        tell("futex_wait", t.sleeps_on, tracer::value(expected), "",
             may_time_out ? "sleeps, with a deadline" : "sleeps", where);
    end_of_step();
}

void engine::tell_why_awake(const void* address, source where) {
    if (!trace_.on) return;
    constexpr const char* reasons[] = {"woken", "TIMED OUT", "SPURIOUS RETURN"};
    tell("futex_wait", address, "", "", reasons[static_cast<int>(me().reason)], where);
}

// As Linux's futex_waitv. One step compares all words and queues the thread on each; the kernel compares one after the
// other, which makes no difference, because a word may as well change after the last comparison. A thread that is woken
// through one word stays queued on the others until it runs. A wake that meets it there in between is spent on it.
wake_reason engine::futex_wait_any(const std::vector<sleeping_place>& places, bool may_time_out,
                                   source where) {
    constexpr footprint f{.everything = true};
    announce(f, "futex_wait");
    bool sleeps = true;
    for (const sleeping_place& each : places) {
        const int x = memory_.locate(each.at, where);
        if (const char* wrong = memory_.touch(x, each.at, me().memory); wrong != nullptr)
            fail(each.at.address, wrong, where);
        sleeps = sleeps && (memory_.at(x).newest().value & 0xFFFF'FFFF) == each.expected;
    }
    executed(f);
    model_thread& t = me();
    t.sleeps_on = places.front().at.address;
    if (!sleeps) {
        if (trace_.on) tell("futex_wait", t.sleeps_on, "", "", "returns at once", where);
        end_of_step();
        return wake_reason::woken;
    }
    t.on_several = true;
    for (const sleeping_place& each : places) sleepers_.push_back({each.at.address, running_});
    fall_asleep(may_time_out, places.front().expected, where);
    announce({.queues = true}, "sleeping");
    if ((in(thread_state::sleeping) & mask_of(running_)) != 0) {
        leave_sleep({.queues = true});
    } else {
        t.reason = wake_reason::woken;
        executed({.queues = true});
        std::erase_if(sleepers_, [this](const sleeper& s) { return s.thread == running_; });
    }
    tell_why_awake(t.sleeps_on, where);
    end_of_step();
    return t.reason;
}

void engine::leave_sleep(const footprint& f) {
    model_thread& t = me();
    const bool late = t.may_time_out && (t.timeouts_left > 0 || now_.ready == 0);
    const bool spurious = t.spurious_left > 0;
    const bool times_out = late && (!spurious || pick(2, choice::exit) == 0);
    executed({.queue = f.queue, .last_resort = times_out && t.timeouts_left == 0, .queues = f.queues});
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
    std::string names;
    const unsigned woken = wake_sleepers(address, count, names);
    if (trace_.on) tell("futex_wake", address, "", "", woken ? "wakes " + names : "nobody sleeps", where);
    end_of_step();
    return woken;
}

void engine::futex_wake_any_and_show(object o, source where) {
    footprint f{.queue = queue_of(o.address)};
    const int x = enter(o, f, "futex_wake", where);
    std::vector<std::size_t> there;
    for (std::size_t i = 0; i != sleepers_.size(); ++i) {
        if (sleepers_[i].address != o.address) continue;
        there.push_back(i);
        thread_at(sleepers_[i].thread)
            .memory.current.raise(static_cast<std::size_t>(x), memory_.at(x).newest().at);
    }
    const unsigned taken = pick(static_cast<unsigned>(there.size()), choice::user);
    executed(f);
    std::string text = "nobody sleeps";
    if (!there.empty()) {
        text = "wakes " + thread_at(sleepers_[there[taken]].thread).name;
        release(there[taken]);
    }
    if (trace_.on) tell("futex_wake", o.address, "", "", text, where);
    end_of_step();
}

void engine::futex_wake_op(object o, word bits, source where) {
    footprint f{.queue = queue_of(o.address), .writes = true, .fence = options_.rmw_is_full_fence};
    const int x = enter(o, f, "futex_wake_op", where);
    full_fence_if(f.fence);
    executed(f);
    const int newest = static_cast<int>(memory_.at(x).count) - 1;
    const word old = memory_.read(me().memory, x, newest, std::memory_order_relaxed);
    write(x, newest, old | bits, std::memory_order_relaxed, true);
    full_fence_if(f.fence);
    std::string names;
    const unsigned woken = wake_sleepers(o.address, ~0u, names);
    if (trace_.on)
        tell("futex_wake_op", o.address, tracer::value(old) + " -> " + tracer::value(old | bits), "",
             woken ? "wakes " + names : "nobody sleeps", where);
    end_of_step();
}

unsigned engine::wake_sleepers(const void* address, unsigned count, std::string& names) {
    unsigned woken = 0;
    for (std::size_t i = 0; i < sleepers_.size() && woken < count;) {
        if (sleepers_[i].address != address) {
            ++i;
            continue;
        }
        if (trace_.on) names += (woken ? ", " : "") + thread_at(sleepers_[i].thread).name;
        release(i);
        ++woken;
    }
    return woken;
}

void engine::release(std::size_t index) {
    const int sleeping = sleepers_[index].thread;
    sleepers_.erase(sleepers_.begin() + static_cast<std::ptrdiff_t>(index));
    chooser_->edge(running_, sleeping);
    if ((in(thread_state::sleeping) & mask_of(sleeping)) == 0) return;  // woken through another word already
    set_state(sleeping, thread_state::ready);
    footprint next{.by = static_cast<std::int8_t>(sleeping)};
    next.queues = thread_at(sleeping).on_several;
    intentions_.next[static_cast<std::size_t>(sleeping)] = next;
    chooser_->withdrawn(sleeping);
}

std::vector<std::pair<word, word>> engine::changes_by(int thread, const void* address) {
    std::vector<std::pair<word, word>> found;
    const location& x = memory_.at(memory_.locate({address, 8}, {}));
    for (std::size_t i = 1; i < x.count; ++i)
        if (x.history[i].writer == thread && x.history[i].step != 0)
            found.emplace_back(x.history[i - 1].value, x.history[i].value);
    return found;
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
