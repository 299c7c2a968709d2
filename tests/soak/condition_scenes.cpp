// SPDX-License-Identifier: Apache-2.0
// Jobs under a lock, whose takers wait for a condition in every way.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/condition.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace soak {
namespace {

// Each job is announced by one notification, so a lost notification makes a taker hang that waits without a deadline.
template <class Lock>
class jobs_under_a_lock : public scene {
public:
    explicit jobs_under_a_lock(support::random_source& random)
        : cords_(static_cast<std::size_t>(some_threads(random))), present_(cords_.size() + 1) {}

    void enter(crew& hands, book& counted) override {
        for (std::size_t i = 0; i != cords_.size(); ++i) {
            hands.start(counted, "job taker", [this, i](worker& self) {
                take(self, cords_[i]);
                leave(self);
            });
        }
        hands.start(counted, "job maker", [this](worker& self) {
            make(self);
            leave(self);
        });
        hands.start(counted, "pulls cords", [this](worker& self) { pull_cords(self, cords_); });
    }

    void end() override {
        {
            const std::lock_guard lock(lock_);
            over_ = true;
        }
        changed_.notify_all();
        room_.notify_all();
        for (auto& each : cords_) each.pull();
    }

    void check() override {
        expect(tocsin::waiting_on(&changed_) == 0 && tocsin::waiting_on(&room_) == 0,
               "a condition has waiters but no threads");
        expect(made_ == taken_ && jobs_ == 0, "a job was lost, or taken twice");
    }

private:
    static constexpr long max = 3;

    void take(worker& self, stop_cord& mine) {
        while (!self.is_over()) {
            std::unique_lock lock(lock_);
            if (jobs_ == 0 && !over_) wait_somehow(self, mine, lock);
            self.done();
            if (jobs_ == 0) {
                self.counts.race();
                continue;
            }
            --jobs_;
            ++taken_;
            self.counts.out(1);
            room_.notify_one();
            // A wait without a predicate ends by its own notification only. Whoever leaves jobs behind tells the next.
            if (jobs_ != 0) changed_.notify_one();
        }
    }

    void wait_somehow(worker& self, stop_cord& mine, std::unique_lock<Lock>& lock) {
        auto& random = self.random;
        const nanoseconds longest(random.below(40'000));
        switch (random.below(5)) {
            case 0: {
                const auto begin = std::chrono::steady_clock::now();
                const auto how = changed_.wait_for(lock, longest, some_spin(random));
                expect(
                    how == std::cv_status::no_timeout || std::chrono::steady_clock::now() - begin >= longest,
                    "a wait for a condition timed out early");
                return;
            }
            case 1: {
                const std::stop_token stop = mine.renew();
                if (self.is_over()) return;  // as in wait_briefly()
                (void)self.timed([&] { return changed_.wait(lock, stop, some_spin(random)); });
                return;
            }
            case 2:
                expect(changed_.wait_any(lock, {.until = longest}, never_set_).index != 1,
                       "a wait took an event that nobody has set");
                return;
            case 3:
                self.timed([&] {
                    return changed_.wait(lock, [&] { return jobs_ != 0 || over_; }, some_spin(random)), true;
                });
                return;
            default: self.timed([&] { return changed_.wait(lock, some_spin(random)), true; }); return;
        }
    }

    void make(worker& self) {
        while (!self.is_over()) {
            {
                std::unique_lock lock(lock_);
                self.timed([&] { return room_.wait(lock, [&] { return jobs_ < max || over_; }), true; });
                if (over_) return;
                ++jobs_;
                ++made_;
                self.counts.in(1);
            }
            self.random.one_in(8) ? changed_.notify_all() : changed_.notify_one();
            self.done();
            support::jitter(self.random);
        }
    }

    // The last of the takers and the maker takes what is left.
    void leave(worker& self) {
        const std::lock_guard lock(lock_);
        if (--present_ != 0) return;
        self.counts.out(static_cast<std::uint64_t>(jobs_));
        taken_ += std::exchange(jobs_, 0);
    }

    std::deque<stop_cord> cords_;
    std::size_t present_;
    Lock lock_;
    tocsin::condition changed_;
    tocsin::condition room_;
    tocsin::auto_reset_event never_set_;
    long jobs_ = 0;
    long made_ = 0;
    long taken_ = 0;
    bool over_ = false;
};

}  // namespace

std::vector<scene_kind> condition_scenes() {
    return {{"condition: jobs", [](support::random_source& random) -> std::unique_ptr<scene> {
                 switch (random.below(3)) {
                     case 0: return std::make_unique<jobs_under_a_lock<std::mutex>>(random);
                     case 1: return std::make_unique<jobs_under_a_lock<std::recursive_mutex>>(random);
                     default: return std::make_unique<jobs_under_a_lock<tocsin::word_lock<>>>(random);
                 }
             }}};
}

}  // namespace soak
