// SPDX-License-Identifier: Apache-2.0
// What processes share while they are killed at random moments.
#include "complaints.hpp"
#include "sanitizer.hpp"
#include "scene.hpp"

#if defined(__linux__)
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace soak {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t processes_of_scene = 10, items = 16;

// `in_hand` and the number of the process that has it.
enum item_state : std::uint32_t { unused, waiting, finished, in_hand };

struct board {
    tocsin::shared_semaphore jobs;             // a permit for each item that waits
    tocsin::shared_auto_reset_event progress;  // an item is finished
    tocsin::shared_manual_reset_event over;
    tocsin::shared_manual_reset_event turn;  // set and reset again and again
    tocsin::shared_lock lock;
    std::uint64_t before = 0, after = 0;  // under the lock: equal, unless its holder died
    std::atomic<bool> torn{false};        // they differed, and no holder had died
    std::array<std::atomic<std::uint32_t>, items> state{};
};

void change_under_lock(board& all) {
    const bool died = all.lock.lock() == tocsin::lock_status::owner_died;
    if (all.before != all.after && !died) all.torn = true;
    if (died) {
        all.after = all.before;
        all.lock.mark_repaired();
    }
    all.before = all.before + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    all.after = all.after + 1;
    all.lock.unlock();
}

void work(board& all, std::uint32_t self) {
    for (;;) {
        all.jobs.acquire();
        if (all.over.is_set()) return;
        change_under_lock(all);
        (void)all.turn.wait_for(50us);
        for (std::atomic<std::uint32_t>& each : all.state) {
            std::uint32_t seen = waiting;
            if (!each.compare_exchange_strong(seen, in_hand + self)) continue;
            seen = in_hand + self;
            (void)each.compare_exchange_strong(seen, finished);
            all.progress.set();
            break;
        }
    }
}

// Ten processes finish items, each exactly once, while they are killed and replaced. A permit that a process had taken
// is gone with it, so the feeder gives one for each kill. If a permit were lost otherwise, an item would stay, and the
// scene would hang.
class killed_processes : public scene {
public:
    void enter(crew& hands, book& counted) override {
        hands.start(counted, "feeder", [this](worker& self) { feed(self); }, target::no);
    }

    void check() override {
        expect(!all().torn, "two processes held a shared lock at once");
        expect(left_ == 0, "an item of a killed process was lost");
    }

private:
    board& all() const { return *static_cast<board*>(memory_.data()); }

    pid_t start(std::uint32_t number) {
        const pid_t child = fork();
        if (child != 0) return child;
        sched_param ordinary{};
        (void)sched_setscheduler(0, SCHED_OTHER, &ordinary);
        alarm(600);  // if the parent is gone
        work(all(), number);
        _exit(0);
    }

    void kill_and_replace(worker& self, std::uint32_t victim) {
        kill(children_[victim], SIGKILL);
        (void)waitpid(children_[victim], nullptr, 0);
        for (std::atomic<std::uint32_t>& each : all().state) {
            std::uint32_t seen = in_hand + victim;
            (void)each.compare_exchange_strong(seen, waiting);
        }
        all().jobs.release();
        self.counts.race();
        children_[victim] = start(victim);
        expect(children_[victim] > 0, "no process could be started");
    }

    void feed(worker& self) {
        for (std::uint32_t i = 0; i != processes_of_scene; ++i) children_[i] = start(i);
        while (!self.is_over() || left_ != 0) {
            for (std::atomic<std::uint32_t>& each : all().state) {
                if (each == finished) {
                    each = unused;
                    --left_;
                    self.counts.out();
                    self.done();
                }
                if (each != unused || self.is_over()) continue;
                ++left_;
                self.counts.in();
                each = waiting;
                all().jobs.release();
            }
            all().turn.set();
            all().turn.reset();
            (void)self.timed([&] { return all().progress.wait_for(1ms); });
            if (self.random.one_in(8))
                kill_and_replace(self, static_cast<std::uint32_t>(self.random.below(processes_of_scene)));
        }
        all().over.set();
        all().jobs.release(processes_of_scene);
        for (const pid_t child : children_) (void)waitpid(child, nullptr, 0);
    }

    tocsin::shared_memory memory_ = tocsin::shared_memory::anonymous(sizeof(board));
    std::array<pid_t, processes_of_scene> children_{};
    std::uint32_t left_ = 0;  // items that are not finished
};

}  // namespace

std::vector<scene_kind> shared_scenes() {
    if (support::thread_sanitizer) return {};  // it does not follow the child of a process with threads
    return {{"shared: killed processes", [](support::random_source&) -> std::unique_ptr<scene> {
                 return std::make_unique<killed_processes>();
             }}};
}

}  // namespace soak

#else  // only Linux has what the objects need

namespace soak {
std::vector<scene_kind> shared_scenes() { return {}; }
}  // namespace soak

#endif
