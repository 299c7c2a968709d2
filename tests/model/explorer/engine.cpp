// SPDX-License-Identifier: Apache-2.0
// Runs, threads and scheduling; the operations are in operations.cpp.
#include "engine.hpp"

#include "hooks.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#define TOCSIN_MODEL_LSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOCSIN_MODEL_LSAN 1
#endif
#endif
#if defined(TOCSIN_MODEL_LSAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace tocsin::model {

namespace {

// The threads of a failing run are abandoned at their last step, with everything they own.
struct leaks_expected {
#if defined(TOCSIN_MODEL_LSAN)
    leaks_expected() { __lsan_disable(); }
    ~leaks_expected() { __lsan_enable(); }
#else
    leaks_expected() {}
#endif
};

}  // namespace

engine::engine(const options& how) : options_(how) {
    if (how.max_steps > step_limit) throw std::invalid_argument("explorer: max_steps is at most 8000");
    for (int i = 0; i < max_threads; ++i) {
        threads_.push_back(std::make_unique<model_thread>());
        thread_at(i).memory.id = i;
    }
}

engine::~engine() = default;

// --- runs ---

void engine::start_anew(int thread) {
    const auto i = static_cast<std::size_t>(thread);
    model_thread& t = thread_at(thread);
    t.memory.clear();
    t.memory.current.clock[i] = 1;
    set_state(thread, thread_state::ready);
    t.returns_to = -1;
    t.relaxed = 0;
    windows_.after[i] = windows_.could_step[i] = windows_.stopped[i] = 0;
    windows_.stepped[i] = ~thread_mask{0};  // the first window excludes nobody
    t.spurious_left = options_.spurious_returns;
    t.timeouts_left = options_.timeouts;
    t.weak_left = options_.weak_failures;
}

report engine::explore(const std::function<void()>& body, std::unique_ptr<chooser> how) {
    const leaks_expected suppress;
    chooser_ = std::move(how);
    report_ = {};
    report_.preemption_bound = options_.preemption_bound;
    report_.one_schedule = options_.one_schedule;
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (;;) {
        run(body);
        count_run();
        if (failed_ || trace_.on) break;
        if (!chooser_->next()) {
            report_.complete = true;
            break;
        }
        if (report_.executions >= options_.max_executions) break;
        if (options_.max_seconds > 0 && report_.executions % 64 == 0 && elapsed() > options_.max_seconds)
            break;
    }
    report_.seconds = elapsed();
    report_.failed = failed_;
    report_.message = failure_;
    report_.replay = to_replay(decisions_);
    if (trace_.on)
        report_.schedule = trace_.table();
    else if (failed_)
        return again_with_table(body);
    return report_;
}

void engine::count_run() {
    ++report_.executions;
    report_.steps += steps_;
    report_.longest = std::max(report_.longest, steps_);
    if (chooser_->cut()) ++report_.redundant;
    report_.hit_stale_distance |= memory_.out_of_reach;
    report_.hit_stale_repeats |= memory_.worn_out;
}

// Only this second run writes a table, because the others must be fast.
report engine::again_with_table(const std::function<void()>& body) {
    report first = report_;
    engine second(options_);
    second.trace_.on = true;
    const report again = second.explore(body, make_replayer(decisions_));
    first.schedule = again.schedule;
    if (again.failed)
        first.message = again.message;  // with names
    else
        first.message += " (and not again when replayed: the body is not repeatable)";
    return first;
}

void engine::run(const std::function<void()>& body) {
    begin(body);
    active = this;
    detail::exploring = true;
    static_cast<void>(next_thread());
    executed({});
    fiber::switch_from(outside_, thread_at(0).stack);
    detail::exploring = false;
    active = nullptr;
    finish();
}

void engine::begin(const std::function<void()>& body) {
    memory_.start(options_);
    trace_.clear();
    sleepers_.clear();
    queues_.clear();
    decisions_.clear();
    steps_ = 0;
    failed_ = false;
    failure_.clear();
    intentions_ = {};
    thread_count_ = 1;
    services_ = 0;
    fixed_ = false;
    running_ = last_stepped_ = 0;
    could_step_ = 0;
    in_ = {};
    model_thread& t = me();
    t.name = "main";
    t.body = body;
    start_anew(0);
    t.stack.prepare(&engine::thread_main, this);
    intentions_.live = mask_of(0);
    chooser_->start(intentions_);
}

void engine::finish() {
    if (!failed_ && options_.on_execution_end) {
        failure_ = options_.on_execution_end();
        failed_ = !failure_.empty();
    }
    memory_.restore();
}

void engine::leave() noexcept {
    fiber::switch_from(me().stack, outside_);
    std::abort();
}

void engine::fail(std::string text) {
    failed_ = true;
    failure_ = std::move(text);
    leave();
}

// --- threads ---

int engine::spawn(std::string_view name, std::function<void()> body) {
    if (thread_count_ == max_threads) fail("too many threads");
    const int number = thread_count_++;
    model_thread& t = thread_at(number);
    t.name = name;
    t.body = std::move(body);
    start_anew(number);
    t.memory.current.join(me().memory.current);
    t.stack.prepare(&engine::thread_main, this);
    intentions_.live |= mask_of(number);
    intentions_.next[static_cast<std::size_t>(number)] = {};
    chooser_->edge(running_, number);
    end_of_step();  // what follows in this thread is not ordered before the new one
    if (trace_.on) tell("spawn", nullptr, t.name, "", "", {});
    t.returns_to = running_;
    switch_to(number);  // up to its first operation
    return number;
}

void engine::spawn_service(std::string_view name, std::function<void()> body) {
    services_ |= mask_of(thread_count_);
    spawn(name, std::move(body));
}

void engine::thread_main(void* self) { static_cast<engine*>(self)->thread_body(); }

void engine::thread_body() {
    try {
        me().body();
    } catch (const std::exception& e) {
        fail(me().name + " ended with an exception: " + e.what());
    } catch (...) {
        fail(me().name + " ended with an exception");
    }
    set_state(running_, thread_state::finished);
    me().body = nullptr;
    intentions_.live &= ~mask_of(running_);
    if (running_ == 0) {
        if (!settled(spawned())) fail("the body has returned before its threads: it needs join_all()");
        leave();
    }
    const int back = me().returns_to;
    me().returns_to = -1;
    switch_to(back >= 0 ? back : next_thread());
    std::abort();
}

void engine::join(thread_mask threads, source where) {
    threads &= ~mask_of(running_);
    set_state(running_, thread_state::joining);
    me().waits_for = threads;
    announce({}, "join");
    set_state(running_, thread_state::ready);
    for (thread_mask m = threads; m != 0; m &= m - 1) {
        chooser_->edge(std::countr_zero(m), running_);
        me().memory.current.join(thread_at(std::countr_zero(m)).memory.current);
    }
    executed({});
    if (trace_.on) tell("join", nullptr, "", "", "", where);
    end_of_step();
}

// The end of a thread disables its next step, which no footprint shows, so withdrawn() has that step explored.
bool engine::end_thread(int thread, source where) {
    // The thread may sleep, and a wake by then reaches another.
    announce({.queues = true, .ends = static_cast<std::int8_t>(thread)}, "the end of a thread");
    const thread_mask it = mask_of(thread);
    const bool runs = (in(thread_state::finished) & it) == 0;
    if (runs) chooser_->withdrawn(thread);
    executed({.queues = true, .ends = static_cast<std::int8_t>(thread)});
    chooser_->edge(thread, running_);
    me().memory.current.join(thread_at(thread).memory.current);
    if (runs) {
        set_state(thread, thread_state::finished);
        intentions_.live &= ~it;
        std::erase_if(sleepers_, [thread](const sleeper& s) { return s.thread == thread; });
    }
    if (trace_.on)
        tell("kill", nullptr, thread_at(thread).name, "", runs ? "ENDS IT" : "has ended already", where);
    end_of_step();
    return runs;
}

void engine::wait_until(const std::function<bool()>& fact, source where) {
    set_state(running_, thread_state::expecting);
    me().expects = &fact;
    me().came_true = false;
    const footprint f{.everything = true};
    announce(f, "wait_until");
    set_state(running_, thread_state::ready);
    executed(f);
    if (trace_.on) tell("wait_until", nullptr, "", "", "has come true", where);
    end_of_step();
}

// --- scheduling ---

bool engine::announce(const footprint& f, const char* doing) {
    const int self = running_;
    intentions_.next[static_cast<std::size_t>(self)] = f;
    intentions_.next[static_cast<std::size_t>(self)].by = static_cast<std::int8_t>(self);
    me().doing = doing;
    int next = me().returns_to;
    if (next >= 0)
        me().returns_to = -1;
    else
        next = next_thread();
    if (next == self) return false;
    switch_to(next);
    return true;
}

void engine::switch_to(int thread) {
    model_thread& from = me();
    running_ = thread;
    fiber::switch_from(from.stack, me().stack);
}

int engine::next_thread() {
    look();
    if (now_.all() == 0) fail(deadlock());
    if (++steps_ > options_.max_steps)
        fail("livelock: more than " + std::to_string(options_.max_steps) + " steps");
    const int thread = chooser_->thread(now_);
    if (chooser_->diverged())
        fail(
            "the run does not repeat an earlier one: the body depends on something that the "
            "explorer doesn't control");
    if ((now_.all() & (now_.all() - 1)) != 0) decisions_.push_back(static_cast<std::uint32_t>(thread));
    last_stepped_ = thread;
    return thread;
}

bool engine::fact_of(model_thread& t) {
    detail::exploring = false;  // atomics are variables for a moment
    const bool holds = (*t.expects)();
    detail::exploring = true;
    if (t.came_true && !holds && options_.reduces())
        fail("what " + t.name +
             " waits for came true and was taken back: a reduced search may overlook that");
    t.came_true = holds;
    return holds;
}

void engine::fix_schedule(bool on) {
    if (options_.reduces()) fail("a search with partial-order reduction can't fix the schedule");
    fixed_ = on;
}

bool engine::others_are_blocked() { return in(thread_state::ready) == 0 && joined() == 0; }

void engine::set_state(int thread, thread_state s) {
    for (thread_mask& each : in_) each &= ~mask_of(thread);
    in_[static_cast<std::size_t>(s)] |= mask_of(thread);
}

thread_mask engine::joined() const {
    thread_mask found = 0;
    for (thread_mask m = in(thread_state::joining); m != 0; m &= m - 1)
        if (settled(thread_at(std::countr_zero(m)).waits_for)) found |= m & (~m + 1);
    return found;
}

void engine::look() {
    situation& s = now_;
    s.exits = s.forced = 0;
    s.running = last_stepped_;
    s.fixed = fixed_;
    s.ready = in(thread_state::ready) | joined();
    for (thread_mask m = in(thread_state::expecting); m != 0; m &= m - 1)
        if (fact_of(thread_at(std::countr_zero(m)))) s.ready |= m & (~m + 1);
    thread_mask timed = 0, spent = 0;
    for (thread_mask m = in(thread_state::sleeping); m != 0; m &= m - 1) {
        const model_thread& t = thread_at(std::countr_zero(m));
        const thread_mask itself = m & (~m + 1);
        if (t.may_time_out) timed |= itself;
        if (t.may_time_out && t.timeouts_left == 0) spent |= itself;
        if (t.spurious_left > 0 || (t.may_time_out && t.timeouts_left > 0)) s.exits |= itself;
    }
    if (s.ready != 0) {
        s.ready = fair(s.ready);
        return;
    }
    // No thread is ready, so time passes. Without a deadline this is a deadlock: no program may rely on a
    // spurious return.
    s.exits |= timed;
    s.forced = spent;
    if (timed == 0) s.exits = 0;
}

// The fair scheduler of Musuvathi and Qadeer (2008). A spinning thread gives way at the end of every window of
// `relaxes` calls of cpu_relax. It gives way to each thread that could have made a step all through the window and did
// not, or that its own steps have blocked. Without this, a spinning thread has infinite executions in which no other
// thread runs. With it, only runs that keep spinning for nothing are left out.
thread_mask engine::fair(thread_mask ready) {
    const thread_mask lost = could_step_ & ~ready;
    could_step_ = ready;
    windows& w = windows_;
    w.stopped[static_cast<std::size_t>(last_stepped_)] |= lost;
    const thread_mask stepped = mask_of(last_stepped_);
    thread_mask waited_for = 0;
    for (std::size_t i = 0; i < max_threads; ++i) {
        w.could_step[i] &= ready;
        w.stepped[i] |= stepped;
        w.after[i] &= ~stepped;
        waited_for |= w.after[i] & ready;
    }
    if (waited_for == 0) return ready;
    thread_mask allowed = 0;
    for (thread_mask m = ready; m != 0; m &= m - 1)
        if ((w.after[static_cast<std::size_t>(std::countr_zero(m))] & ready) == 0) allowed |= m & (~m + 1);
    report_.cut_spins |= allowed != ready;
    return allowed;
}

void engine::close_window() {
    if (++me().relaxed < options_.relaxes) return;
    me().relaxed = 0;
    const auto i = static_cast<std::size_t>(running_);
    windows& w = windows_;
    w.after[i] |= (w.could_step[i] | w.stopped[i]) & ~w.stepped[i] & ~mask_of(running_);
    w.stepped[i] = 0;
    w.could_step[i] = could_step_;
    w.stopped[i] = 0;
}

void engine::executed(const footprint& f) {
    footprint whole = f;
    whole.by = static_cast<std::int8_t>(running_);
    chooser_->executed(running_, whole);
}

std::string engine::deadlock() {
    std::string text = "deadlock:";
    for (int i = 0; i < thread_count_; ++i) {
        const model_thread& t = thread_at(i);
        if ((in(thread_state::sleeping) & mask_of(i)) != 0) {
            text += "\n  " + t.name + " sleeps on " + object_name(t.sleeps_on) + " since step " +
                    std::to_string(t.slept_at) + " (while it was " + tracer::value(t.slept_for) +
                    "), and nobody is left to wake it";
        } else if ((in(thread_state::expecting) & mask_of(i)) != 0) {
            text += "\n  " + t.name + " waits for something that does not come true";
        } else if ((in(thread_state::joining) & mask_of(i)) != 0) {
            text += "\n  " + t.name + " waits for the end of";
            for (int j = 0; j < thread_count_; ++j)
                if ((t.waits_for & mask_of(j)) != 0 && !settled(mask_of(j))) text += ' ' + thread_at(j).name;
        }
    }
    return text;
}

}  // namespace tocsin::model
