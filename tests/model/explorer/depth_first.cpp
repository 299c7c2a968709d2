// SPDX-License-Identifier: Apache-2.0
// The exhaustive search.
//
// A run is a sequence of frames, one for each step. A frame holds the thread chosen and, where that thread's step had
// several possible results, the choices among them. After a run, the search changes the last choice that has an
// alternative, and replays everything before it. The search explores all results of a step. (If the test asks for one
// schedule, by `one_schedule` or fix_schedule(), the search does so for choose() only.) Which threads it explores
// depends on the reduction:
//
// none        all that can run, within the preemption bound; with `one_schedule` only the first that can run.
// sleep_sets  all that can run and are not asleep. A thread falls asleep in a frame when the search has explored its
//             step from there. It wakes with the first step that its own step depends on (Godefroid 1996).
// dpor        one at first, and more where steps conflict; with sleep sets (source sets: Abdulla and others 2014).
//
// State. Every step has a footprint (footprint.hpp). A step *happens after* the earlier steps of its thread, the steps
// that it depends on by footprint, and the steps that an edge names (a wake, a spawn, an end that was joined). It also
// happens after everything that these steps happen after. The clock of the step's frame holds all of them. Two runs
// are equivalent, and of one *class*, if swapping adjacent independent steps turns one into the other. All that a run
// computes, and the results that a step may have, depend on the class alone. A sleeping thread may *exit*, by its
// deadline or spuriously, while its budgets last, but it need not. All other enabled threads are *ready*.
//
// Invariants.
//   depth_first-1  Independent steps commute: neither enables, disables or changes the other. There are exceptions,
//                  where a thread is enabled or disabled by what no footprint shows. Each is dealt with:
//                  - a wake disables the exits of the threads it wakes, so withdrawn() has these exits explored;
//                  - a deadline beyond the budget passes only where no thread is ready, so it happens after every step
//                    before it and before every step after it (footprint::last_resort), and no such exit sleeps;
//                  - the fact of a wait_until() must stay true once it is (the engine fails a run where it does not);
//                  - fairness (engine.cpp) keeps a spinning thread from its turn; see *Spinning* below.
//   depth_first-2  A frame explores one ready thread or, if it began with an exit, all that can run.
//   depth_first-3  Let p be the step of a frame, and let a later step e of the same run be in a race with p: e depends
//                  on p, and no steps in between order them. Let v be the steps between p and e that don't happen after
//                  p, and then e. The frame then explores one more ready thread that can *begin* v, which means that
//                  the thread's first step in v happens after nothing in v. If only exits can begin v, the frame
//                  explores all of these. Threads that the frame has explored already and threads that were asleep on
//                  arrival don't count.
//   depth_first-4  A futex_wait() that returns at once touches less than it announced. Had it come before p, it might
//                  have slept, and so depended on wakes. So a frame in a race with it explores all that can run.
//                  A failed compare-exchange touches less than a successful one. That matters only where p can change
//                  the result of the compare-exchange without a write to the location, through the sequentially
//                  consistent order alone. There a failed compare-exchange keeps the footprint of a write
//                  (operations.cpp).
//
// Nothing is lost. Claim: let E be a frame whose subtree has been explored without a failure. Let u be a sequence of
// steps that is possible from E and that no thread asleep on arrival can begin. Then some run through E makes the steps
// of u in an equivalent order. If u ends the run, or leads to a state where no thread is ready, some run makes them
// with no other step in between. For the first frame this says that every class of runs is explored.
// Proof, by induction on the order in which subtrees end, then on the length of u:
//   If E explored a thread that can begin u, take the first such thread, make its step, and continue with the remainder
//   of u. No thread that is asleep after this step can begin the remainder.
//   Otherwise E did not explore all that can run, so it explored a ready thread (depth_first-2). Let p be the step of
//   the last ready thread that it explored. Let w be the steps of u that neither depend on p nor happen after one that
//   does. All of them are possible after p.
//   If w is all of u, the induction gives a run that makes p and u. Then p's thread is ready after u, so u does not
//   lead to a state without ready threads. Nor does u end in a failure, which that run would have found.
//   Otherwise let e be a step of u outside w that happens after steps of w only. e is no step of p's thread, because
//   that thread could then begin u. e is no last resort, since p's thread is ready. If p disables e, then e is the exit
//   of a sleeper that p wakes. w has no step on that sleeper's queue, so the exit can begin u, and withdrawn() had it
//   explored.
//   Otherwise e's thread can make a step e' after p and w: the same operation, perhaps with another result. It depends
//   on p. No thread asleep after p can begin w and e', so by induction a run makes p, w and e', and there e' is in a
//   race with p. If e' touches less than e, E explored all that can run (depth_first-4), which was excluded. Otherwise
//   e' happens after each step of w that e happens after. Let q be the thread of the first of these steps, or of e' if
//   there is none. q can begin v. It can also begin u, so it is neither explored nor asleep on arrival. By
//   depth_first-3, E explores a ready thread after p, or q itself. Both were excluded.
//
// Stale reads. The search leaves out some results (memory.hpp, Redundancy). Clocks decide which, so this, too, depends
// on the class alone. Each result that is left out is a result in another class, in which the load comes before the
// stores that it does not see.
//
// Spinning. A thread that has called cpu_relax `relaxes` times gives way, in every kind of search. A spin that ends
// only when another thread acts loses nothing by that, because the run without the vain looks has the same outcome. If
// a bounded spin is longer than that, runs in which it gives up early may be missing. The report then says that spins
// were bounded.
//
// Where all threads that could run are asleep, the run repeats others. The search finishes such a run without further
// branching. It does not abandon the run, because the run's threads hold resources on their stacks and its failures are
// real.
//
// Checked by: reduction_test.cpp, thousands of random programs against the search without reduction.
#include "chooser.hpp"

#include <bit>

namespace tocsin::model {

namespace {

struct result_choice {
    unsigned taken;
    unsigned count;
};

struct frame {
    situation at;
    thread_mask asleep = 0;  // on arrival
    thread_mask wanted = 0;  // to be explored from here
    thread_mask done = 0;    // explored from here
    int thread = -1;
    int preemptions = 0;  // up to and including this choice
    footprint touched;
    thread_clock clock{};  // steps that this step depends on, by thread: frame number + 1
    std::vector<result_choice> results;
};

int lowest(thread_mask m) noexcept { return std::countr_zero(m); }

}  // namespace

class depth_first final : public chooser {
public:
    explicit depth_first(const options& how) : bound_(how.preemption_bound), reduce_(how.reduce) {
        one_schedule_ = how.one_schedule;
        if (bound_ >= 0 || one_schedule_) reduce_ = reduction::none;
        ordered_ = bound_ >= 0 || reduce_ != reduction::none;
    }

    void start(const intentions& all) override {
        all_ = &all;
        used_ = 0;
        result_ = 0;
        cut_ = false;
        asleep_next_ = 0;
        for (thread_clock& c : clocks_) c.fill(0);
        for (thread_clock& c : edges_) c.fill(0);
    }

    int thread(const situation& now) override {
        if (cut_) return preferred(now, now.all());
        result_ = 0;
        if (used_ < depth_) return again(now);
        const thread_mask asleep = reduce_ == reduction::none ? 0 : asleep_next_ & ~now.forced;
        const thread_mask awake = now.all() & ~asleep;
        if (awake == 0) {
            cut_ = true;
            return preferred(now, now.all());
        }
        return first_time(now, asleep, preferred(now, awake));
    }

    unsigned value(const std::vector<unsigned>& keys, choice what) override {
        const auto count = static_cast<unsigned>(keys.size());
        if (cut_ || used_ == 0 || count == 1) return 0;
        frame& f = frames_[used_ - 1];
        if ((one_schedule_ || f.at.fixed) && what != choice::user) return 0;
        if (result_ == f.results.size()) f.results.push_back({0, count});
        result_choice& r = f.results[result_++];
        if (r.count != count) diverged_ = true;
        return r.taken < count ? r.taken : 0;
    }

    void executed(int thread, const footprint& touched) override {
        if (cut_ || used_ == 0 || !ordered_) return;
        frame& f = frames_[used_ - 1];
        const auto p = static_cast<std::size_t>(thread);
        if (used_ < depth_) {  // this frame is replayed: its successor knows all this
            clocks_[p] = f.clock;
            edges_[p].fill(0);
            return;
        }
        f.touched = touched;
        thread_clock c = clocks_[p];
        join(c, edges_[p]);
        if (touched.last_resort)
            for (const thread_clock& other : clocks_) join(c, other);
        races(thread, touched, c);
        c[p] = static_cast<std::uint32_t>(used_);
        f.clock = clocks_[p] = c;
        edges_[p].fill(0);
        asleep_next_ = 0;
        const thread_mask candidates = (f.asleep | f.done) & all_->live & ~mask_of(thread);
        for (thread_mask m = candidates; m != 0; m &= m - 1)
            if (!dependent(all_->next[static_cast<std::size_t>(lowest(m))], touched))
                asleep_next_ |= mask_of(lowest(m));
    }

    void edge(int from, int to) override {
        join(edges_[static_cast<std::size_t>(to)], clocks_[static_cast<std::size_t>(from)]);
    }

    void withdrawn(int sleeper) override {
        if (cut_ || used_ == 0 || reduce_ != reduction::dpor) return;
        frame& f = frames_[used_ - 1];
        f.wanted |= mask_of(sleeper) & f.at.all();
    }

    bool next() override {
        depth_ = used_;
        while (depth_ > 0) {
            frame& f = frames_[depth_ - 1];
            while (!f.results.empty()) {
                if (++f.results.back().taken < f.results.back().count) return true;
                f.results.pop_back();
            }
            f.done |= mask_of(f.thread);
            if (another(f)) return true;
            --depth_;
        }
        return false;
    }

    bool follows(int thread, std::uint32_t behind, int writer, std::uint32_t earlier) const override {
        if (!ordered_) return true;
        if (earlier == 0 || cut_) return false;
        const auto p = static_cast<std::size_t>(thread);
        const auto q = static_cast<std::size_t>(writer);
        return thread == writer || clocks_[p][q] >= earlier || edges_[p][q] >= earlier ||
               (behind != 0 && frames_[behind - 1].clock[q] >= earlier);
    }

    std::uint32_t step_number() const override { return static_cast<std::uint32_t>(used_); }
    bool cut() const override { return cut_; }
    bool diverged() const override { return diverged_; }

private:
    static void join(thread_clock& a, const thread_clock& b) noexcept {
        for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i] < b[i]) a[i] = b[i];
    }

    // Staying with the running thread keeps the tables short. Exits come last: depth_first-2.
    static int preferred(const situation& now, thread_mask among) noexcept {
        if (among & now.ready & mask_of(now.running)) return now.running;
        return lowest((among & now.ready) != 0 ? among & now.ready : among);
    }

    static bool preempts(const situation& at, int thread) noexcept {
        return thread != at.running && (at.ready & mask_of(at.running)) != 0;
    }

    int before(std::size_t number) const { return number == 0 ? 0 : frames_[number - 1].preemptions; }

    int again(const situation& now) {
        frame& f = frames_[used_++];
        if (f.at.ready != now.ready || f.at.exits != now.exits) diverged_ = true;
        return (now.all() & mask_of(f.thread)) != 0 ? f.thread : preferred(now, now.all());
    }

    int first_time(const situation& now, thread_mask asleep, int thread) {
        if (frames_.size() == used_) frames_.emplace_back();
        frame& f = frames_[used_++];
        depth_ = used_;
        f.at = now;
        f.asleep = asleep;
        f.done = 0;
        const bool one =
            one_schedule_ || now.fixed || (reduce_ == reduction::dpor && (now.ready & mask_of(thread)) != 0);
        f.wanted = one ? mask_of(thread) : now.all();
        f.thread = thread;
        f.preemptions = before(used_ - 1) + (preempts(now, thread) ? 1 : 0);
        f.results.clear();
        return thread;
    }

    bool another(frame& f) {
        thread_mask left = f.wanted & f.at.all() & ~f.done & ~f.asleep;
        const int base = before(depth_ - 1);
        for (; left != 0; left &= left - 1) {
            const int thread = lowest(left);
            const int preemptions = base + (preempts(f.at, thread) ? 1 : 0);
            if (bound_ >= 0 && preemptions > bound_) continue;
            f.thread = thread;
            f.preemptions = preemptions;
            return true;
        }
        return false;
    }

    // From the newest step back, so that a step ordered through later ones is known by the time it is met. `c` takes in
    // all that the new step depends on.
    void races(int thread, const footprint& touched, thread_clock& c) {
        const std::size_t count = used_ - 1;
        const bool narrowed = touched.queue < 0 && all_->next[static_cast<std::size_t>(thread)].queue >= 0;
        for (std::size_t i = count; i-- > 0;) {
            frame& earlier = frames_[i];
            if (earlier.thread == thread || i + 1 <= c[static_cast<std::size_t>(earlier.thread)]) continue;
            if (!dependent(earlier.touched, touched)) continue;
            if (reduce_ == reduction::dpor) {
                if (narrowed)
                    earlier.wanted |= earlier.at.all();  // depth_first-4
                else
                    reverse(earlier, beginners(i, count, thread, c), thread);
            }
            join(c, earlier.clock);
        }
    }

    // depth_first-3
    void reverse(frame& earlier, thread_mask can_begin, int thread) {
        can_begin &= earlier.at.all();
        if (can_begin == 0) {  // the thread gives way there
            earlier.wanted |= earlier.at.all();
            return;
        }
        can_begin &= ~(earlier.asleep | earlier.done);
        const thread_mask ready = can_begin & earlier.at.ready;
        if (ready == 0)
            earlier.wanted |= can_begin;
        else if ((ready & earlier.wanted) == 0)
            earlier.wanted |= (ready & mask_of(thread)) != 0 ? mask_of(thread) : ready & (~ready + 1);
    }

    // The threads whose first step in v happens after nothing in v. `c` holds what the new step depends on, as far back
    // as frame `first`.
    thread_mask beginners(std::size_t first, std::size_t count, int thread, const thread_clock& c) {
        const auto owner = static_cast<std::size_t>(frames_[first].thread);
        thread_mask met = 0, found = 0;
        between_.clear();
        const auto consider = [&](int t, const thread_clock& past) {
            if ((met & mask_of(t)) != 0) return;
            met |= mask_of(t);
            for (std::size_t k : between_)
                if (past[static_cast<std::size_t>(frames_[k].thread)] > k) return;
            found |= mask_of(t);
        };
        for (std::size_t j = first + 1; j < count; ++j) {
            const frame& f = frames_[j];
            if (f.clock[owner] > first) continue;  // it happens after the step of `first`
            consider(f.thread, f.clock);
            between_.push_back(j);
        }
        consider(thread, c);
        return found;
    }

    const intentions* all_ = nullptr;
    int bound_;
    reduction reduce_;
    bool one_schedule_;
    bool ordered_;               // whether the search knows which steps depend on which
    std::vector<frame> frames_;  // the first depth_ are the current prefix, then spares
    std::vector<std::size_t> between_;
    std::size_t depth_ = 0;
    std::size_t used_ = 0;    // frames passed in this run
    std::size_t result_ = 0;  // results passed in the current frame
    thread_mask asleep_next_ = 0;
    bool cut_ = false;
    bool diverged_ = false;
    std::array<thread_clock, max_threads> clocks_{};  // of each thread's last step
    std::array<thread_clock, max_threads> edges_{};   // to be joined by its next
};

std::unique_ptr<chooser> make_depth_first(const options& how) { return std::make_unique<depth_first>(how); }

}  // namespace tocsin::model
