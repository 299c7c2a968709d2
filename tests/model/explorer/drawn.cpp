// SPDX-License-Identifier: Apache-2.0
// Searches that draw their choices, and the replay of one run.
//
// random  Every thread that can run is equally likely. A load takes the newest message half of the time.
// pct     Threads have random priorities, and the thread with the highest one runs. At depth - 1 steps, drawn over the
//         length of the runs seen so far, the running thread gets the lowest priority. A run of k steps and n threads
//         finds a bug that needs d ordering constraints with probability at least 1 / (n k^(d-1)) (Burckhardt and
//         others 2010). That argument is about interleavings; the results of steps are drawn as in `random`.
#include "chooser.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace tocsin::model {

namespace {

class generator {
public:
    void seed(std::uint64_t s) noexcept { state_ = s; }

    std::uint64_t operator()() noexcept  // splitmix64
    {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    unsigned below(unsigned n) noexcept { return static_cast<unsigned>((*this)() % n); }

private:
    std::uint64_t state_ = 1;
};

int nth(thread_mask m, unsigned n) noexcept {
    for (; n > 0; --n) m &= m - 1;
    return std::countr_zero(m);
}

class random_chooser : public chooser {
public:
    explicit random_chooser(const options& how) : seed_(how.seed) {}

    void start(const intentions&) override { draw_.seed(seed_ * 0xD1342543DE82EF95u + ++runs_); }

    int thread(const situation& now) override {
        // An early exit is drawn less often; otherwise hardly any thread would stay asleep.
        const bool early = now.ready == 0 || (now.exits != 0 && draw_.below(8) == 0);
        const thread_mask among = early && now.exits != 0 ? now.exits : now.ready;
        return nth(among, draw_.below(static_cast<unsigned>(std::popcount(among))));
    }

    unsigned value(const std::vector<unsigned>& keys, choice what) override {
        if ((what == choice::message || what == choice::position) && draw_.below(2) == 0) return 0;
        return draw_.below(static_cast<unsigned>(keys.size()));
    }

    bool next() override { return true; }

protected:
    std::uint64_t seed_;
    std::uint64_t runs_ = 0;
    generator draw_;
};

class priority_chooser final : public random_chooser {
public:
    explicit priority_chooser(const options& how) : random_chooser(how), depth_(how.pct_depth) {}

    void start(const intentions& all) override {
        longest_ = std::max(longest_, step_);
        step_ = 0;
        random_chooser::start(all);
        for (std::uint64_t& p : priority_) p = draw_() | (std::uint64_t{1} << 63);
        changes_.clear();
        for (int i = 1; i < depth_; ++i) changes_.push_back(draw_.below(longest_) + 1);
        lowest_ = std::uint64_t{1} << 62;
    }

    int thread(const situation& now) override {
        ++step_;
        for (unsigned c : changes_)
            if (c == step_) priority_[static_cast<std::size_t>(now.running)] = --lowest_;
        // A thread that never blocks would starve the others.
        if (step_ > 4 * longest_ + 100 && draw_.below(4) == 0) return random_chooser::thread(now);
        thread_mask among = now.ready;
        if (among == 0 || (now.exits != 0 && draw_.below(16) == 0)) among = now.all();
        int best = std::countr_zero(among);
        for (; among != 0; among &= among - 1) {
            const int t = std::countr_zero(among);
            if (priority_[static_cast<std::size_t>(t)] > priority_[static_cast<std::size_t>(best)]) best = t;
        }
        return best;
    }

private:
    int depth_;
    unsigned step_ = 0;
    unsigned longest_ = 20;
    std::uint64_t lowest_ = 0;
    std::array<std::uint64_t, max_threads> priority_{};
    std::vector<unsigned> changes_;
};

class replayer final : public chooser {
public:
    explicit replayer(std::vector<std::uint32_t> decisions) : decisions_(std::move(decisions)) {}

    void start(const intentions&) override { next_ = 0; }

    int thread(const situation& now) override {
        if (std::popcount(now.all()) == 1) return std::countr_zero(now.all());
        const int wanted = static_cast<int>(take());
        if (wanted < max_threads && (now.all() & mask_of(wanted)) != 0) return wanted;
        diverged_ = true;
        return std::countr_zero(now.all());
    }

    unsigned value(const std::vector<unsigned>& keys, choice) override {
        const auto found = std::find(keys.begin(), keys.end(), take());
        if (found != keys.end()) return static_cast<unsigned>(found - keys.begin());
        diverged_ = true;
        return 0;
    }

    bool next() override { return false; }
    bool diverged() const override { return diverged_; }

private:
    std::uint32_t take() {
        if (next_ < decisions_.size()) return decisions_[next_++];
        diverged_ = true;
        return 0;
    }

    std::vector<std::uint32_t> decisions_;
    std::size_t next_ = 0;
    bool diverged_ = false;
};

}  // namespace

void chooser::executed(int, const footprint&) {}
void chooser::edge(int, int) {}
void chooser::withdrawn(int) {}
bool chooser::follows(int, std::uint32_t, int, std::uint32_t) const { return true; }

std::unique_ptr<chooser> make_random(const options& how) { return std::make_unique<random_chooser>(how); }

std::unique_ptr<chooser> make_priorities(const options& how) {
    return std::make_unique<priority_chooser>(how);
}

std::unique_ptr<chooser> make_replayer(std::vector<std::uint32_t> decisions) {
    return std::make_unique<replayer>(std::move(decisions));
}

// Decisions joined by dots, repetitions as value*times: "1.0*12.2".
std::string to_replay(const std::vector<std::uint32_t>& decisions) {
    std::string text = "r1:";
    for (std::size_t i = 0; i < decisions.size();) {
        std::size_t n = 1;
        while (i + n < decisions.size() && decisions[i + n] == decisions[i]) ++n;
        if (i != 0) text += '.';
        text += std::to_string(decisions[i]);
        if (n > 1) text += '*' + std::to_string(n);
        i += n;
    }
    return text;
}

std::vector<std::uint32_t> from_replay(std::string_view text) {
    std::vector<std::uint32_t> decisions;
    if (!text.starts_with("r1:")) return decisions;
    const char* at = text.data() + 3;
    const char* const end = text.data() + text.size();
    while (at < end) {
        std::uint32_t value = 0;
        std::size_t times = 1;
        at = std::from_chars(at, end, value).ptr;
        if (at < end && *at == '*') at = std::from_chars(at + 1, end, times).ptr;
        decisions.insert(decisions.end(), times, value);
        ++at;
    }
    return decisions;
}

}  // namespace tocsin::model
