// SPDX-License-Identifier: Apache-2.0
// The pool of doorbells (src/platform/poller/doorbells.cpp). Threads take and release doorbells at the same time, and
// no doorbell has two owners. Doorbells are closed and opened again while others ring. doorbells-3, doorbells-5,
// [doorbell-free], [doorbell-made]. Proof P9.
#include "explorer/futex.hpp"
#include "platform/poller/doorbells.cpp"  // the modelled library does not contain it
#include "support/library_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace {

// The descriptors of a run, by number: which are open, and which way each was struck last.
struct descriptors {
    static constexpr int max = 8;
    bool is_open[max];
    tocsin::model::atomic<std::uint32_t> struck[max];
};
constinit descriptors system_descriptors{};

}  // namespace

namespace tocsin::platform {
void close_descriptor(int descriptor) noexcept {
    model::check(system_descriptors.is_open[descriptor], "what is closed is open");
    system_descriptors.is_open[descriptor] = false;
}
std::uint32_t descriptor_identity(int descriptor) noexcept {
    return descriptor >= 0 ? static_cast<std::uint32_t>(descriptor) + 1 : 0;
}
}  // namespace tocsin::platform

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;
using platform::doorbell_id;

// After each run the explorer gives its atomics their initial values again.
constinit platform::doorbell_pool pool;

// A strike, which takes effect some time after the ring began.
void strike(int end, bool even) {
    auto& object = system_descriptors.struck[end];
    model::check(system_descriptors.is_open[end], "no descriptor is struck that is closed, or a stranger's");
    object.store(even ? 1 : 0, std::memory_order_relaxed);
    model::futex_wake(&object, 1);
}

// One poll, which finds the bell struck.
void sleep(platform::doorbell& bell) {
    const std::uint32_t struck = bell.even() ? 1 : 0;
    auto& object = system_descriptors.struck[bell.wait_end()];
    while (object.load(std::memory_order_relaxed) != struck) (void)model::futex_wait(&object, 1 - struck);
    bell.answer();
}

// What a poller does with a bell that nobody has.
bool answer_if_struck(platform::doorbell& bell) noexcept {
    const auto found = system_descriptors.struck[bell.wait_end()].load(std::memory_order_relaxed);
    if (found != (bell.even() ? 1u : 0u)) return false;
    bell.answer();
    return true;
}
const platform::pool_owner owns_pool(pool, answer_if_struck);

class ledger {
public:
    ledger() { std::ranges::fill(system_descriptors.is_open, false); }

    doorbell_id take() {
        const auto taken = pool.acquire([this](int (&ends)[2]) {
            ends[0] = ends[1] = ++opened_;
            system_descriptors.is_open[opened_] = true;
            return 0;
        });
        model::check(taken.error == 0 && taken.id < has_owner_.size(), "there is one");
        model::check(!has_owner_[taken.id], "and it is nobody else's");
        model::check(pool[taken.id].wait_end() > 0, "it is made");
        has_owner_[taken.id] = true;
        return taken.id;
    }
    void release(doorbell_id bell) {
        has_owner_[bell] = false;
        pool.release(bell);
    }
    // How many descriptors are open.
    static long open() { return std::ranges::count(system_descriptors.is_open, true); }

private:
    int opened_ = 0;
    std::array<bool, 8> has_owner_{};
};

// One thread takes a doorbell while the other takes two and gives the first back: the stack has the same top again, but
// the doorbell that was under it is taken.
MODEL_TEST(doorbell_pool_model, NoDoorbellHasTwoOwners, holds_always) {
    ledger all;
    const doorbell_id first = all.take();
    const doorbell_id second = all.take();
    all.release(first);
    all.release(second);
    r.spawn("one", [&] {
        (void)all.take();
        (void)all.take();
    });
    r.spawn("other", [&] {
        const doorbell_id top = all.take();
        (void)all.take();
        all.release(top);
    });
    r.join_all();
}

MODEL_TEST(doorbell_pool_model, AReleasedDoorbellIsTakenAgain, holds_always) {
    ledger all;
    all.release(all.take());
    for (int i = 0; i != 2; ++i) {
        r.spawn("user", [&] { all.release(all.take()); });
    }
    r.join_all();
    const doorbell_id one = all.take();
    const doorbell_id other = all.take();
    model::check(one != other, "two");
}

MODEL_TEST(doorbell_pool_model, ARingReachesADoorbellOnlyWhenItIsMade, holds_always) {
    ledger all;
    r.spawn("maker", [&] { (void)all.take(); });
    r.spawn("ringer", [] {
        pool.ring(0,
                  [](int end, bool even) { model::check(end > 0 && even, "the first ring of a made one"); });
    });
    r.join_all();
}

// The pool closes a doorbell while a ring for its former owner is under way, and opens it again for another, who must
// hear every ring.
TEST(doorbell_pool_model, ADoorbellIsClosedAndOpenedWhileALateRingIsUnderWay) {
    for (const bool opened_again : {false, true}) {
        holds_always([opened_again](run& r) {
            ledger all;
            const doorbell_id bell = all.take();
            model::atomic<int> reason{0};
            r.spawn("late ringer", [bell] { pool.ring(bell, strike); });
            all.release(bell);
            pool.close_idle();
            if (opened_again) {
                const doorbell_id own = all.take();
                r.spawn("ringer", [&reason, own] {
                    reason.store(1, std::memory_order_relaxed);
                    pool.ring(own, strike);
                });
                while (reason.load(std::memory_order_relaxed) != 1) sleep(pool[own]);
            }
            r.join_all();
        });
    }
}

MODEL_TEST(doorbell_pool_model, NoMoreStayOpenThanThePoolKeeps, holds_always) {
    ledger all;
    const doorbell_id one = all.take();
    const doorbell_id other = all.take();
    r.spawn("one", [&] { all.release(one); });
    r.spawn("other", [&] { all.release(other); });
    r.join_all();
    pool.close_idle();
    model::check(ledger::open() == 0, "all are closed");
}

}  // namespace
