// SPDX-License-Identifier: Apache-2.0
// Wait groups in every interleaving of small programs. Nobody passes while a job is counted, everybody passes after the
// last done(), what came before is visible, and nothing is touched that is gone. Proof P26 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

MODEL_TEST(wait_group_model, TheLastDoneReleasesAndEveryDonePublishes, holds_within, 2) {
    wait_group jobs(2);
    plain<int> first{0};
    plain<int> second{0};
    r.spawn("first", [&] {
        first = 1;
        jobs.done();
    });
    r.spawn("second", [&] {
        second = 2;
        jobs.done();
    });
    r.spawn("waiter", [&] {
        jobs.wait(sleep_at_once);
        model::check(first == 1 && second == 2, "what came before each done is visible");
    });
    r.join_all();
    r.check(jobs.try_wait(), "open");
}

// A job adds a job, whose thread may reach zero.
MODEL_TEST(wait_group_model, AJobMayAddAJob, holds_within, 2) {
    wait_group jobs(1);
    auto_reset_event started;
    plain<int> work{0};
    r.spawn("job", [&] {
        jobs.add();
        started.set();
        jobs.done();
    });
    r.spawn("added", [&] {
        started.wait(sleep_at_once);
        work = 1;
        jobs.done();
    });
    r.spawn("waiter", [&] {
        jobs.wait(sleep_at_once);
        model::check(work == 1, "it waits for the added job");
    });
    r.join_all();
    r.check(jobs.try_wait(), "open");
}

// Two threads leave zero and reach it again and again. After its own add(), a thread finds the gate closed.
MODEL_TEST(wait_group_model, NobodyPassesBetweenAnAddAndItsDone, holds_within, 2) {
    wait_group jobs;
    for (const char* name : {"one", "other"}) {
        r.spawn(name, [&] {
            for (int i = 0; i != 2; ++i) {
                jobs.add();
                model::check(!jobs.try_wait(), "closed");
                jobs.done();
            }
        });
    }
    r.join_all();
    r.check(jobs.try_wait(), "open at zero");
}

MODEL_TEST(wait_group_model, ThreeThreadsLeaveZeroTogether, holds_within, 2) {
    wait_group jobs(1);
    r.spawn("last", [&] { jobs.done(); });
    for (const char* name : {"one", "other"}) {
        r.spawn(name, [&] {
            jobs.add();
            model::check(!jobs.try_wait(), "closed");
            jobs.done();
            jobs.wait(sleep_at_once);
        });
    }
    r.join_all();
    r.check(jobs.try_wait(), "open at zero");
}

MODEL_TEST(wait_group_model, WhoeverPassesMayDestroyIt, holds_within, 2) {
    auto* const jobs = new wait_group(2);
    r.spawn("first", [&] { jobs->done(); });
    r.spawn("second", [&] { jobs->done(); });
    r.spawn("waiter", [&] {
        jobs->wait(sleep_at_once);
        delete jobs;
    });
    r.join_all();
}

}  // namespace
