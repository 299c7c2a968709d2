// SPDX-License-Identifier: Apache-2.0
// What processes share while they are killed at random moments.
#include "complaints.hpp"
#include "processes.hpp"
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
#include <mutex>
#include <new>

#include <sys/types.h>

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

void work(void* memory, std::uint32_t self) {
    board& all = *static_cast<board*>(memory);
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

// The boards, which exist before the first process does. There are few, so that few processes run at once.
class all_boards {
public:
    static constexpr std::size_t count = 4;

    // Returns null if all are in use.
    board* take() {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i != count; ++i) {
            if (in_use_[i]) continue;
            in_use_[i] = true;
            return new (at(i)) board{};
        }
        return nullptr;
    }
    void give_back(const board* one) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i != count; ++i) {
            if (at(i) == one) in_use_[i] = false;
        }
    }

private:
    void* at(std::size_t index) const { return static_cast<board*>(memory_.data()) + index; }

    std::mutex mutex_;
    std::array<bool, count> in_use_{};
    tocsin::shared_memory memory_ = tocsin::shared_memory::anonymous(count * sizeof(board));
};

all_boards& boards() {
    static all_boards all;
    return all;
}

// Ten processes finish items, each exactly once, while they are killed and replaced. A permit that a process had taken
// is gone with it, so the feeder gives one for each kill. If a permit were lost otherwise, an item would stay, and the
// scene would hang.
class killed_processes : public scene {
public:
    killed_processes() : board_(boards().take()) {}
    ~killed_processes() override { boards().give_back(board_); }

    void enter(crew& hands, book& counted) override {
        if (board_ == nullptr) return;
        hands.start(counted, "feeder", [this](worker& self) { feed(self, *board_); }, target::no);
    }

    void check() override {
        if (board_ == nullptr) return;
        expect(!board_->torn, "two processes held a shared lock at once");
        expect(left_ == 0 || !all_started_, "an item of a killed process was lost");
    }

private:
    // Without all its processes the scene ends.
    void start(std::uint32_t number, board& all) {
        children_[number] = start_process(work, &all, number);
        if (children_[number] > 0) return;
        all_started_ = false;
        complain("no process could be started");
    }

    void kill_and_replace(worker& self, std::uint32_t victim, board& all) {
        kill_process(children_[victim]);
        for (std::atomic<std::uint32_t>& each : all.state) {
            std::uint32_t seen = in_hand + victim;
            (void)each.compare_exchange_strong(seen, waiting);
        }
        all.jobs.release();
        self.counts.race();
        start(victim, all);
    }

    void feed(worker& self, board& all) {
        for (std::uint32_t i = 0; i != processes_of_scene && all_started_; ++i) start(i, all);
        while (all_started_ && (!self.is_over() || left_ != 0)) {
            for (std::atomic<std::uint32_t>& each : all.state) {
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
                all.jobs.release();
            }
            all.turn.set();
            all.turn.reset();
            (void)self.timed([&] { return all.progress.wait_for(1ms); });
            // When the act is over, the processes finish what there is.
            if (!self.is_over() && self.random.one_in(8)) {
                const auto victim = static_cast<std::uint32_t>(self.random.below(processes_of_scene));
                kill_and_replace(self, victim, all);
            }
        }
        all.over.set();
        all.jobs.release(processes_of_scene);
        for (const pid_t each : children_) {
            if (each <= 0) continue;
            expect(has_ended_well(each), "a process ended in another way");
            self.done();
        }
    }

    board* const board_;  // null if there was none left
    std::array<pid_t, processes_of_scene> children_{};
    bool all_started_ = true;
    std::uint32_t left_ = 0;  // items that are not finished
};

}  // namespace

std::vector<scene_kind> shared_scenes() {
    if (support::thread_sanitizer) return {};  // it does not see what other processes do
    (void)boards();
    prepare_processes();
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
