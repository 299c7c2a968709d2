// SPDX-License-Identifier: Apache-2.0
// Runs, threads and scheduling; the operations are in operations.cpp.
#include "engine.hpp"

#include "hooks.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

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
    for (int i = 0; i < max_threads; ++i) {
        threads_.push_back(std::make_unique<model_thread>());
        thread_at(i).memory.id = i;
    }
}

engine::~engine() = default;

// --- runs ---

namespace {

void start_anew(model_thread& t, const options& how) {
    t.memory.clear();
    t.memory.current.clock[static_cast<std::size_t>(t.memory.id)] = 1;
    t.state = thread_state::ready;
    t.returns_to = -1;
    t.relaxed = 0;
    t.after = t.could_step = t.stopped = 0;
    t.stepped = ~thread_mask{0};  // the first window excludes nobody
    t.spurious_left = how.spurious_returns;
    t.timeouts_left = how.timeouts;
    t.weak_left = how.weak_failures;
}

}  // namespace

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
    model_thread& t = me();
    t.name = "main";
    t.body = body;
    start_anew(t, options_);
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
    start_anew(t, options_);
    t.memory.current.join(me().memory.current);
    t.memory.acquired = t.memory.current;
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
    me().state = thread_state::finished;
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

bool engine::settled(thread_mask threads) const {
    for (; threads != 0; threads &= threads - 1)
        if (thread_at(std::countr_zero(threads)).state != thread_state::finished) return false;
    return true;
}

void engine::join(thread_mask threads, source where) {
    threads &= ~mask_of(running_);
    me().state = thread_state::joining;
    me().waits_for = threads;
    announce({}, "join");
    me().state = thread_state::ready;
    for (thread_mask m = threads; m != 0; m &= m - 1) {
        chooser_->edge(std::countr_zero(m), running_);
        me().memory.current.join(thread_at(std::countr_zero(m)).memory.current);
    }
    me().memory.acquired.join(me().memory.current);
    executed({});
    if (trace_.on) tell("join", nullptr, "", "", "", where);
    end_of_step();
}

void engine::wait_until(const std::function<bool()>& fact, source where) {
    me().state = thread_state::expecting;
    me().expects = &fact;
    me().came_true = false;
    const footprint f{.everything = true};
    announce(f, "wait_until");
    me().state = thread_state::ready;
    executed(f);
    if (trace_.on) tell("wait_until", nullptr, "", "", "has come true", where);
    end_of_step();
}

// --- scheduling ---

bool engine::announce(const footprint& f, const char* doing) {
    const int self = running_;
    intentions_.next[static_cast<std::size_t>(self)] = f;
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
    now_ = look();
    if (now_.all() == 0) fail(deadlock());
    if (++steps_ > options_.max_steps)
        fail("livelock: more than " + std::to_string(options_.max_steps) + " steps");
    const int thread = chooser_->thread(now_);
    if (chooser_->diverged())
        fail(
            "the run does not repeat an earlier one: the body depends on something that the "
            "explorer doesn't control");
    if (std::popcount(now_.all()) > 1) decisions_.push_back(static_cast<std::uint32_t>(thread));
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

bool engine::others_are_blocked() {
    for (int i = 0; i < thread_count_; ++i) {
        model_thread& t = thread_at(i);
        if (t.state != thread_state::expecting && can_step(t)) return false;
    }
    return true;
}

bool engine::can_step(model_thread& t) {
    switch (t.state) {
        case thread_state::ready: return true;
        case thread_state::joining: return settled(t.waits_for);
        case thread_state::expecting: return fact_of(t);
        case thread_state::sleeping:
        case thread_state::finished: break;
    }
    return false;
}

situation engine::look() {
    situation s;
    s.running = last_stepped_;
    s.fixed = fixed_;
    thread_mask timed = 0, spent = 0;
    for (int i = 0; i < thread_count_; ++i) {
        model_thread& t = thread_at(i);
        if (can_step(t)) s.ready |= mask_of(i);
        if (t.state != thread_state::sleeping) continue;
        if (t.may_time_out) timed |= mask_of(i);
        if (t.may_time_out && t.timeouts_left == 0) spent |= mask_of(i);
        if (t.spurious_left > 0 || (t.may_time_out && t.timeouts_left > 0)) s.exits |= mask_of(i);
    }
    if (s.ready != 0) {
        s.ready = fair(s.ready);
        return s;
    }
    // No thread is ready, so time passes. Without a deadline this is a deadlock: no program may rely on a
    // spurious return.
    s.exits |= timed;
    s.forced = spent;
    if (timed == 0) s.exits = 0;
    return s;
}

// The fair scheduler of Musuvathi and Qadeer (2008). A spinning thread gives way at the end of every window of
// `relaxes` calls of cpu_relax. It gives way to each thread that could have made a step all through the window and did
// not, or that its own steps have blocked. Without this, a spinning thread has infinite executions in which no other
// thread runs. With it, only runs that keep spinning in vain are left out.
thread_mask engine::fair(thread_mask ready) {
    const thread_mask lost = could_step_ & ~ready;
    could_step_ = ready;
    thread_mask allowed = 0;
    for (int i = 0; i < thread_count_; ++i) {
        model_thread& t = thread_at(i);
        if (i == last_stepped_) t.stopped |= lost;
        t.could_step &= ready;
        t.stepped |= mask_of(last_stepped_);
        t.after &= ~mask_of(last_stepped_);
        if ((ready & mask_of(i)) != 0 && (t.after & ready) == 0) allowed |= mask_of(i);
    }
    report_.cut_spins |= allowed != ready;
    return allowed;
}

void engine::close_window() {
    model_thread& t = me();
    if (++t.relaxed < options_.relaxes) return;
    t.after |= (t.could_step | t.stopped) & ~t.stepped & ~mask_of(running_);
    t.relaxed = 0;
    t.stepped = 0;
    t.could_step = could_step_;
    t.stopped = 0;
}

void engine::executed(const footprint& f) { chooser_->executed(running_, f); }

std::string engine::deadlock() {
    std::string text = "deadlock:";
    for (int i = 0; i < thread_count_; ++i) {
        const model_thread& t = thread_at(i);
        if (t.state == thread_state::sleeping) {
            text += "\n  " + t.name + " sleeps on " + object_name(t.sleeps_on) + " since step " +
                    std::to_string(t.slept_at) + " (while it was " + tracer::value(t.slept_for) +
                    "), and nobody is left to wake it";
        } else if (t.state == thread_state::expecting) {
            text += "\n  " + t.name + " waits for something that does not come true";
        } else if (t.state == thread_state::joining) {
            text += "\n  " + t.name + " waits for the end of";
            for (int j = 0; j < thread_count_; ++j)
                if ((t.waits_for & mask_of(j)) != 0 && !settled(mask_of(j))) text += ' ' + thread_at(j).name;
        }
    }
    return text;
}

}  // namespace tocsin::model
