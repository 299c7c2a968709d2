// SPDX-License-Identifier: Apache-2.0
// Several threads do the same to one subject, each timed by its own CPU clock.
#pragma once

#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"

#include <vector>

namespace lab {

template <std::uint64_t OperationsAStep = 1, class Subject, class Step>
void time_each_thread(context& run, const char* metric, std::uint64_t wanted, Subject& subject, Step step) {
    std::vector<histogram> times(wanted);
    std::vector<batches_done> done(wanted);
    thread_group threads(wanted, [&](std::size_t i) {
        if (wanted <= usable_cores().size() && !pin_to_nth(i)) {
            run.note("not permitted to pin threads to cores");
        }
        done[i] = time_batches_by_cpu<OperationsAStep>(run.budget_ns(), times[i], subject, step);
    });
    if (!threads.shortage().empty()) run.note(threads.shortage());
    timed_section section(run);
    threads.go();
    threads.join();
    batches_done sum;
    for (std::size_t i = 0; i < wanted; ++i) {
        run.distribution(metric).merge(times[i]);
        sum.operations += done[i].operations;
        sum.harness_calls += done[i].harness_calls;
    }
    section.stop(sum.operations, 0, sum.harness_calls + threads.size());
}

}  // namespace lab
