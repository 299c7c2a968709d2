// SPDX-License-Identifier: Apache-2.0
// A parent feeds eight worker processes, and one of them is killed now and then. Every item is done exactly once.
//
//     eight_workers [SECONDS [MILLISECONDS_BETWEEN_KILLS]]      such as: eight_workers 60 1000
//
// What tocsin does: no permit of the semaphore is lost or doubled, and no process is held up by a dead one. What the
// program has to do itself: a permit that a worker has taken is gone with the worker. So the board says which worker
// has which item in hand. After a death, the parent takes the dead worker's item back, and releases one permit for
// it. (If the worker died before it had taken an item, then there is one permit too many, and some worker finds no
// item for it.) And an item becomes `done` in one step, so that it counts once: work with effects elsewhere, such as
// in a file, would need such a step there.
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::uint32_t workers = 8, items = 64;

enum item_state : std::uint32_t { unused, waiting, done, in_hand };  // in_hand + the worker's number

struct board {
    tocsin::shared_semaphore jobs;               // one permit for each item that waits
    tocsin::shared_auto_reset_event progress;    // an item is done
    tocsin::shared_manual_reset_event finished;  // the workers may go home
    std::atomic<std::uint32_t> state[items];
    std::atomic<std::uint64_t> results[items];
};

void work(board& all, std::uint32_t self) {
    for (;;) {
        all.jobs.acquire();
        if (all.finished.is_set()) return;
        for (std::uint32_t i = 0; i != items; ++i) {
            std::uint32_t seen = waiting;
            if (!all.state[i].compare_exchange_strong(seen, in_hand + self)) continue;
            std::uint64_t sum = 0;
            for (std::uint64_t n = 0; n != 200'000; ++n) sum += n * i;
            all.results[i] = sum;
            seen = in_hand + self;
            (void)all.state[i].compare_exchange_strong(seen, done);
            all.progress.set();
            break;
        }
    }
}

pid_t start(board& all, std::uint32_t self) {
    const pid_t child = fork();
    if (child != 0) return child;
    work(all, self);
    _exit(0);
}

}  // namespace

int main(int count, char** arguments) {
    using clock = std::chrono::steady_clock;
    const auto run_time = std::chrono::seconds(count > 1 ? std::atoi(arguments[1]) : 2);
    const auto between = std::chrono::milliseconds(count > 2 ? std::atoi(arguments[2]) : 50);

    auto memory = tocsin::shared_memory::anonymous(sizeof(board));
    board& all = *static_cast<board*>(memory.data());
    std::array<pid_t, workers> children{};
    for (std::uint32_t i = 0; i != workers; ++i) children[i] = start(all, i);

    unsigned long fed = 0, collected = 0, taken_back = 0, kills = 0;
    bool wrong = false;
    const auto end = clock::now() + run_time;
    auto next_kill = clock::now() + between;
    for (bool feeds = true; feeds || collected != fed;) {
        for (std::uint32_t i = 0; i != items; ++i) {
            if (all.state[i] == done) {
                wrong |= all.results[i] != 200'000ull * 199'999 / 2 * i;
                all.state[i] = unused;
                ++collected;
            }
            if (feeds && all.state[i] == unused) {
                all.results[i] = 0;
                all.state[i] = waiting;
                all.jobs.release();
                ++fed;
            }
        }
        (void)all.progress.wait_until(next_kill);  // a worker that died before its set() is noticed there
        if (clock::now() < next_kill) continue;
        next_kill += between;
        const auto victim = static_cast<std::uint32_t>(kills++ % workers);
        kill(children[victim], SIGKILL);
        (void)waitpid(children[victim], nullptr, 0);
        for (std::atomic<std::uint32_t>& each : all.state) {
            std::uint32_t seen = in_hand + victim;
            if (each.compare_exchange_strong(seen, waiting)) ++taken_back;
        }
        all.jobs.release();
        children[victim] = start(all, victim);
        feeds = clock::now() < end;
    }
    all.finished.set();
    all.jobs.release(workers);
    for (const pid_t child : children) (void)waitpid(child, nullptr, 0);
    std::printf("%lu items, %lu collected, %lu taken back from the dead, %lu workers killed\n", fed,
                collected, taken_back, kills);
    return wrong || collected != fed ? 1 : 0;
}
