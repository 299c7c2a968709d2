// The exhaustive search.
//
// A run is a sequence of frames, one per step: the thread chosen, and the
// choices among results that its step had. After a run the last choice that has
// an alternative is changed, everything before it is replayed. Results are always
// all explored; threads depend on the reduction:
//
// none        all that can run, within the preemption bound.
// sleep_sets  all that can run and are not asleep. A thread falls asleep in a
//             frame when its step has been explored from there, and wakes with
//             the first step that is dependent on its own (Godefroid).
// dpor        only one at first. When a step is found to be in a race with an
//             earlier one (dependent, of another thread, not ordered by others in
//             between), a thread that can begin the reversed order is added where
//             the earlier one was chosen, unless one is there already; together with
//             sleep sets (source sets: Abdulla and others 2014. The older rule, to
//             add the racing thread itself, loses runs when that one is asleep).
//
// A run in which all that could run is asleep repeats others. It is finished
// without further branching instead of being abandoned: its threads hold
// resources on their stacks, and its failures are real.
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
        if (bound_ >= 0) reduce_ = reduction::none;
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
        const thread_mask asleep = reduce_ == reduction::none || now.barrier ? 0 : asleep_next_;
        const thread_mask awake = now.all() & ~asleep;
        if (awake == 0) {
            cut_ = true;
            races_of_the_rest();
            return preferred(now, now.all());
        }
        return first_time(now, asleep, preferred(now, awake));
    }

    unsigned value(const std::vector<unsigned>& keys, choice) override {
        const auto count = static_cast<unsigned>(keys.size());
        if (cut_ || used_ == 0 || count == 1) return 0;
        frame& f = frames_[used_ - 1];
        if (result_ == f.results.size()) f.results.push_back({0, count});
        result_choice& r = f.results[result_++];
        if (r.count != count) diverged_ = true;
        return r.taken < count ? r.taken : 0;
    }

    void executed(int thread, const footprint& touched) override {
        if (cut_ || used_ == 0 || !ordered_) return;
        frame& f = frames_[used_ - 1];
        const auto p = static_cast<std::size_t>(thread);
        if (used_ < depth_) {  // replayed: its successor knows all this
            clocks_[p] = f.clock;
            edges_[p].fill(0);
            return;
        }
        f.touched = touched;
        thread_clock c = clocks_[p];
        join(c, edges_[p]);
        if (f.at.barrier)
            for (const thread_clock& other : clocks_) join(c, other);
        races(used_ - 1, thread, touched, c);
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

    // Staying with the running thread keeps the tables short; those that would
    // leave a sleep by themselves come last.
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
        f.wanted = reduce_ == reduction::dpor && !now.barrier ? mask_of(thread) : now.all();
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

    // Threads that still want to make a step when a run is cut may be in a race
    // with it too.
    void races_of_the_rest() {
        if (reduce_ != reduction::dpor) return;
        for (thread_mask m = all_->live; m != 0; m &= m - 1) {
            const auto p = static_cast<std::size_t>(lowest(m));
            thread_clock c = clocks_[p];
            join(c, edges_[p]);
            races(used_, lowest(m), all_->next[p], c);
        }
    }

    // From the newest step back, so that a step ordered through later ones is
    // known by the time it is met. `c` takes in all that the new step depends on.
    void races(std::size_t count, int thread, const footprint& touched, thread_clock& c) {
        for (std::size_t i = count; i-- > 0;) {
            frame& e = frames_[i];
            if (e.thread == thread || i + 1 <= c[static_cast<std::size_t>(e.thread)]) continue;
            if (!dependent(e.touched, touched)) continue;
            if (reduce_ == reduction::dpor) reverse(e, initials(i, count, thread, c), thread);
            join(c, e.clock);
        }
    }

    // What must be explored instead of `e` is v: the steps after it that don't
    // depend on it, then the new one. Any thread that can begin v will do.
    void reverse(frame& e, thread_mask beginners, int thread) {
        beginners &= e.at.all();
        if (beginners == 0)
            e.wanted |= e.at.all();
        else if ((beginners & e.wanted) == 0)
            e.wanted |= (beginners & mask_of(thread)) != 0 ? mask_of(thread) : beginners & (~beginners + 1);
    }

    // The threads whose first step in v depends on nothing in v. `c` holds what
    // the new step depends on, as far back as frame `first`.
    thread_mask initials(std::size_t first, std::size_t count, int thread, const thread_clock& c) {
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
            if (f.clock[owner] > first) continue;  // depends on it
            consider(f.thread, f.clock);
            between_.push_back(j);
        }
        consider(thread, c);
        return found;
    }

    const intentions* all_ = nullptr;
    int bound_;
    reduction reduce_;
    bool ordered_;               // knows which steps depend on which
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
