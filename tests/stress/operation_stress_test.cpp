// SPDX-License-Identifier: Apache-2.0
// Operations start themselves again and again in their functions, with short deadlines, while threads release permits
// and cancel operations at random. As many permits come out as go in, each start is followed by one call, and as many
// waits are stopped as cancels have won.
#include "facts.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

using namespace support;
using namespace tocsin;

struct stage {
    tocsin::counting_semaphore<> a{0};
    tocsin::counting_semaphore<> b{0};
    std::atomic<long> in_a{0}, in_b{0}, out_a{0}, out_b{0};
    std::atomic<long> started{0}, called{0}, stopped{0}, won{0}, timed_out{0};
    std::atomic<bool> enough{false};
};

// An operation, whatever its sources are.
class actor {
public:
    actor(stage& on, std::uint64_t number) : on_(on), random_(number) {}
    virtual ~actor() = default;

    bool cancel() noexcept { return base().cancel(); }
    bool is_active() const noexcept { return active_.load(); }
    void begin() {
        active_.store(true);
        again();
    }

protected:
    virtual tocsin::operation_base& base() noexcept = 0;
    virtual void start(const tocsin::limits& how) noexcept = 0;

    void ended(wait_status how) noexcept {
        on_.called.fetch_add(1);
        if (how == wait_status::stopped) on_.stopped.fetch_add(1);
        if (how == wait_status::timed_out) on_.timed_out.fetch_add(1);
        if (on_.enough.load()) {
            active_.store(false);
        } else {
            again();
        }
    }

    stage& on_;

private:
    void again() noexcept {
        on_.started.fetch_add(1);
        start({.until = random_.one_in(4) ? tocsin::deadline::never()
                                          : tocsin::deadline(std::chrono::microseconds(random_.below(200)))});
    }

    random_source random_;
    std::atomic<bool> active_{false};
};

class any_actor final : public actor {
public:
    any_actor(stage& on, std::uint64_t number)
        : actor(on, number), wait_(tocsin::any_operation(took{*this}, tocsin::limits(), on.a, on.b)) {}

private:
    struct took {
        void operator()(any_result how) const noexcept { self.took_one(how); }
        any_actor& self;
    };
    void took_one(any_result how) noexcept {
        if (how.status == wait_status::signaled) (how.index == 0 ? on_.out_a : on_.out_b).fetch_add(1);
        ended(how.status);
    }
    tocsin::operation_base& base() noexcept override { return wait_; }
    void start(const tocsin::limits& how) noexcept override { wait_.start(how); }

    tocsin::operation<took, false, tocsin::detail::wait_needs::limits, tocsin::counting_semaphore<>,
                      tocsin::counting_semaphore<>>
        wait_;
};

class all_actor final : public actor {
public:
    all_actor(stage& on, std::uint64_t number)
        : actor(on, number), wait_(tocsin::all_operation(took{*this}, tocsin::limits(), on.a, on.b)) {}

private:
    struct took {
        void operator()(wait_status how) const noexcept { self.took_both(how); }
        all_actor& self;
    };
    void took_both(wait_status how) noexcept {
        if (how == wait_status::signaled) {
            on_.out_a.fetch_add(1);
            on_.out_b.fetch_add(1);
        }
        ended(how);
    }
    tocsin::operation_base& base() noexcept override { return wait_; }
    void start(const tocsin::limits& how) noexcept override { wait_.start(how); }

    tocsin::operation<took, true, tocsin::detail::wait_needs::limits, tocsin::counting_semaphore<>,
                      tocsin::counting_semaphore<>>
        wait_;
};

TEST(OperationStress, EachStartIsFollowedByOneCallAndPermitsBalance) {
    stage on;
    std::vector<std::unique_ptr<actor>> actors;
    for (std::uint64_t i = 0; i != 12; ++i) {
        if (i % 3 == 0) {
            actors.push_back(std::make_unique<all_actor>(on, i));
        } else {
            actors.push_back(std::make_unique<any_actor>(on, i));
        }
    }
    for (const auto& each : actors) each->begin();
    const stress_time time;
    {
        thread_group threads;
        for (std::uint64_t i = 0; i != 2; ++i) {
            threads.start([&, i] {
                random_source random(100 + i);
                while (!time.is_over()) {
                    const bool first = random.one_in(2);
                    (first ? on.in_a : on.in_b).fetch_add(1);
                    (first ? on.a : on.b).release();
                    jitter(random);
                }
            });
            threads.start([&, i] {
                random_source random(200 + i);
                while (!time.is_over()) {
                    if (actors[random.below(actors.size())]->cancel()) on.won.fetch_add(1);
                    jitter(random);
                }
            });
        }
        threads.join();
    }
    on.enough = true;
    for (const auto& each : actors) {
        support::until("the operation is idle", [&] {
            if (each->cancel()) on.won.fetch_add(1);
            return !each->is_active();
        });
    }
    actors.clear();
    while (on.a.try_acquire()) on.out_a.fetch_add(1);
    while (on.b.try_acquire()) on.out_b.fetch_add(1);
    EXPECT_EQ(on.in_a, on.out_a);
    EXPECT_EQ(on.in_b, on.out_b);
    EXPECT_EQ(on.started, on.called);
    EXPECT_EQ(on.stopped, on.won);
    std::printf("%ld calls, %ld stopped, %ld timed out\n", on.called.load(), on.stopped.load(),
                on.timed_out.load());
}

}  // namespace
