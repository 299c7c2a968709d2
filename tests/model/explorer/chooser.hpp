// SPDX-License-Identifier: Apache-2.0
// A chooser makes every choice of a run: which thread makes the next step, and which of several results that step has.
#pragma once

#include "footprint.hpp"
#include "options.hpp"
#include "view.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::model {

struct situation {
    thread_mask ready = 0;   // threads that can make a step on their own
    thread_mask exits = 0;   // threads that sleep, but may time out or return spuriously
    thread_mask forced = 0;  // those of `exits` whose deadline may pass only because no thread is ready
    int running = 0;         // the thread that made the last step; may be in no mask

    bool fixed = false;  // the test wants one schedule here: fix_schedule()

    thread_mask all() const noexcept { return ready | exits; }
};

enum class choice { message, position, exit, weak, user };

// What each live thread will do next.
struct intentions {
    std::array<footprint, max_threads> next{};
    thread_mask live = 0;
};

class chooser {
public:
    virtual ~chooser() = default;

    // `all` outlives the run.
    virtual void start(const intentions& all) = 0;
    virtual int thread(const situation& now) = 0;
    // Chooses one of the results that have these keys. A key means the same in every search, whatever the search leaves
    // out.
    virtual unsigned value(const std::vector<unsigned>& keys, choice what) = 0;
    // Says what the step just chosen turned out to touch.
    virtual void executed(int thread, const footprint& touched);
    // Says that the next step of `to` happens after the last step of `from`.
    virtual void edge(int from, int to);
    // Says that the sleeper could have left on its own until this step.
    virtual void withdrawn(int sleeper);
    virtual bool next() = 0;  // whether there is another run to make

    // Whether the step that `thread` is making depends on step `earlier` of `writer`, given that the step being made
    // comes after step `behind`.
    virtual bool follows(int thread, std::uint32_t behind, int writer, std::uint32_t earlier) const;
    virtual std::uint32_t step_number() const { return 0; }
    virtual bool cut() const { return false; }       // whether what follows repeats an earlier run
    virtual bool diverged() const { return false; }  // whether the body proved not to be repeatable
};

std::unique_ptr<chooser> make_depth_first(const options& how);
std::unique_ptr<chooser> make_random(const options& how);
std::unique_ptr<chooser> make_priorities(const options& how);
std::unique_ptr<chooser> make_replayer(std::vector<std::uint32_t> decisions);

std::string to_replay(const std::vector<std::uint32_t>& decisions);
std::vector<std::uint32_t> from_replay(std::string_view text);

}  // namespace tocsin::model
