// The pool of doorbells (src/platform/poller/doorbells.cpp): threads take and release them at the same time, and
// no doorbell has two owners. doorbells-5, [doorbell-free], [doorbell-made]. Proof P9.
#include "platform/poller/doorbells.cpp"  // the modelled library does not contain it
#include "support/library_model.hpp"

#include <array>

namespace tocsin::platform {
void close_descriptor(int) noexcept {}
}  // namespace tocsin::platform

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;
using platform::doorbell_id;

// After each run the explorer gives its atomics their initial values again.
constinit platform::doorbell_pool pool;

class ledger {
public:
    doorbell_id take() {
        const auto taken = pool.acquire([this](int (&ends)[2]) {
            ends[0] = ends[1] = ++opened_;
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

private:
    int opened_ = 0;
    std::array<bool, 8> has_owner_{};
};

// One thread takes a doorbell while the other takes two and gives the first back: the stack has the same top again, but
// the doorbell that was under it is taken.
TEST(doorbell_pool_model, NoDoorbellHasTwoOwners) {
    holds_always([](run& r) {
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
    });
}

TEST(doorbell_pool_model, AReleasedDoorbellIsTakenAgain) {
    holds_always([](run& r) {
        ledger all;
        all.release(all.take());
        for (int i = 0; i != 2; ++i) {
            r.spawn("user", [&] { all.release(all.take()); });
        }
        r.join_all();
        const doorbell_id one = all.take();
        const doorbell_id other = all.take();
        model::check(one != other, "two");
    });
}

TEST(doorbell_pool_model, ARingReachesADoorbellOnlyWhenItIsMade) {
    holds_always([](run& r) {
        ledger all;
        r.spawn("maker", [&] { (void)all.take(); });
        r.spawn("ringer", [] {
            pool.ring(
                0, [](int end, bool even) { model::check(end > 0 && even, "the first ring of a made one"); });
        });
        r.join_all();
    });
}

}  // namespace
