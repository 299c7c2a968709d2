// SPDX-License-Identifier: Apache-2.0
// Times operations that are too short for the clock, in batches. A batch is long enough that reading the clock (about
// 50 ns) takes a quarter of a percent of it.
#pragma once

#include "../scenario.hpp"
#include "clock.hpp"
#include "keep.hpp"

#include <cstdint>
#include <type_traits>

namespace lab {

inline constexpr std::int64_t batch_ns = 20'000;

// Runs operation(subject) `count` times. The operation is stateless, so that the loop keeps the subject's address in a
// register, as a program would; if the operation captured it, the compiler would load it again after every acquire.
// Aligned and never inlined, so that every contestant's loop starts at the same kind of address.
template <class Subject, class Operation>
[[gnu::noinline, gnu::aligned(64)]] void repeat(std::uint64_t count, Subject& subject, Operation operation) {
    static_assert(std::is_empty_v<Operation>);
    for (std::uint64_t i = 0; i < count; ++i) operation(subject);
}

struct batch {
    std::uint64_t size = 4;      // operations that take at least batch_ns
    std::uint64_t executed = 0;  // operations run to find that out
};

// Finds the batch size. Warms up caches, predictors and the core, too.
template <class Subject, class Operation>
batch find_batch(Subject& subject, Operation operation, std::int64_t warm_up_ns) {
    batch found;
    const std::int64_t warm = now() + warm_up_ns;
    for (;;) {
        const std::int64_t start = now();
        repeat(found.size, subject, operation);
        const std::int64_t end = now();
        found.executed += found.size;
        if (end - start < batch_ns) {
            found.size *= 2;
        } else if (end >= warm) {
            return found;
        }
    }
}

// Times the operation in the calling thread until the run's budget is spent. Records the mean of each batch under
// `metric`.
template <class Subject, class Operation>
void time_batches(context& run, const char* metric, Subject& subject, Operation operation) {
    histogram& times = run.distribution(metric);
    const std::uint64_t size = find_batch(subject, operation, run.budget_ns() / 10).size;
    std::uint64_t batches = 0;
    timed_section section(run);
    const std::int64_t end = now() + run.budget_ns();
    std::int64_t start = now();
    while (start < end || batches == 0) {
        repeat(size, subject, operation);
        const std::int64_t stop = now();
        times.record_batch(stop - start, size);
        start = stop;
        ++batches;
    }
    section.stop(size * batches);
}

struct batches_done {
    std::uint64_t operations = 0;  // including the warm-up
    std::uint64_t harness_calls = 0;
};

// The same for each of several threads at once, by the thread's CPU clock: what an operation costs, no matter what else
// runs on the core. A step is OperationsAStep operations.
template <std::uint64_t OperationsAStep = 1, class Subject, class Step>
batches_done time_batches_by_cpu(std::int64_t budget_ns, histogram& times, Subject& subject, Step step) {
    const batch found = find_batch(subject, step, budget_ns / 10);
    const std::uint64_t size = found.size * 4;  // reading this clock is a system call
    batches_done done{found.executed * OperationsAStep, 1};
    const std::int64_t end = now() + budget_ns;
    std::int64_t start = thread_cpu();
    do {
        repeat(size, subject, step);
        const std::int64_t stop = thread_cpu();
        times.record_batch(stop - start, size * OperationsAStep);
        start = stop;
        done.operations += size * OperationsAStep;
        ++done.harness_calls;
    } while (now() < end);
    return done;
}

}  // namespace lab
