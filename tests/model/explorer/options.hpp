// SPDX-License-Identifier: Apache-2.0
// How to explore, and the report of an exploration.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tocsin::model {

inline constexpr unsigned step_limit = 8000;

enum class search {
    exhaustive,  // depth-first over every choice
    random,      // every choice drawn, seeded
    pct,         // random thread priorities, lowered at a few random steps
};

// Which runs the exhaustive search leaves out as equivalent. With a preemption bound it is always `none`, because a
// reduction and such a bound do not combine soundly.
enum class reduction {
    none,
    sleep_sets,  // one complete run per class of equivalent runs, but many cut ones
    dpor,        // the same, and branches only where two steps really conflict
};

struct options {
    // --- the search ---
    search how = search::exhaustive;
    reduction reduce = reduction::dpor;
    int preemption_bound = -1;                  // -1: unbounded
    bool one_schedule = false;                  // explores what choose() offers, each with one schedule
    std::uint64_t max_executions = 20'000'000;  // then stop, and say `complete == false`
    double max_seconds = 0;                     // 0: no limit
    std::uint64_t seed = 1;
    int pct_depth = 3;          // priority changes in a run, plus one
    unsigned max_steps = 3000;  // a longer run is reported as a livelock; at most `step_limit`

    // --- the memory ---
    // Every read-modify-write is a sequentially consistent fence as well (x86).
    bool rmw_is_full_fence = false;
    // Loads acquire, stores release, modification order is execution order.
    bool total_store_order = false;
    // A store may be placed before newer stores of other threads that its thread has not seen. The outcome 2+2W needs
    // this.
    bool store_insertion = true;
    // A load reads at most this many messages behind the newest one.
    unsigned stale_distance = 8;
    // A thread reads the same outdated message at most this often.
    unsigned stale_repeats = 2;

    // --- the environment; each number is a budget per thread and run ---
    unsigned spurious_returns = 1;
    unsigned timeouts = 1;  // at any point; more only when nothing else can run
    unsigned weak_failures = 0;
    // After this many calls of cpu_relax a thread gives way to the threads that could have run since then and did not.
    // A spin that ends on its own should be no longer than this. If it is longer, runs in which it gives up early may
    // be missing. Other spins lose nothing.
    unsigned relaxes = 2;

    // Called outside the run after every complete run, when atomics hold their last values. A text that is not empty is
    // a failure.
    std::function<std::string()> on_execution_end;

    // Whether the search leaves out branches that only other orders of steps need.
    bool reduces() const noexcept {
        return how == search::exhaustive && preemption_bound < 0 && reduce == reduction::dpor &&
               !one_schedule;
    }

    // x86: read-modify-writes are full fences and the stores are TSO's.
    static options x86() {
        options o;
        o.rmw_is_full_fence = true;
        o.total_store_order = true;
        o.store_insertion = false;
        return o;
    }

    static options drawn(std::uint64_t executions, std::uint64_t seed = 1) {
        options o;
        o.how = search::random;
        o.max_executions = executions;
        o.seed = seed;
        return o;
    }

    static options priorities(std::uint64_t executions, std::uint64_t seed = 1, int depth = 3) {
        options o = drawn(executions, seed);
        o.how = search::pct;
        o.pct_depth = depth;
        return o;
    }

    static options bounded(int preemptions) {
        options o;
        o.preemption_bound = preemptions;
        return o;
    }
};

struct report {
    bool failed = false;
    std::string message;   // what went wrong
    std::string schedule;  // the failing run, as a table
    std::string replay;    // give it to replay() to run exactly that run again

    bool complete = false;            // every run within the bounds was explored
    std::uint64_t executions = 0;     // all runs
    std::uint64_t redundant = 0;      // runs cut as equivalent to an earlier one
    std::uint64_t steps = 0;          // of all runs
    unsigned longest = 0;             // steps of the longest run
    int preemption_bound = -1;        // the bound explored up to, -1 if none
    bool one_schedule = false;        // of each combination of choices
    bool hit_stale_distance = false;  // an older message was out of reach of a load
    bool hit_stale_repeats = false;   // a load was refused an outdated message that it had taken too often
    bool cut_spins = false;           // a spinning thread had to give way to others
    double seconds = 0;

    bool passed() const noexcept { return !failed; }
    bool exhausted() const noexcept { return !failed && complete; }
    std::string summary() const;  // one line of numbers
    std::string text() const;     // summary, and for a failure message, table and replay string
};

}  // namespace tocsin::model
