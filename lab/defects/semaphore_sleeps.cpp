// SPDX-License-Identifier: Apache-2.0
// Two threads take turns with a semaphore of one permit. In each phase both acquire it and release it once. A thread
// that sleeps in acquire() while the permit is free has lost its wake-up.
#include "reproduction.hpp"

#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <atomic>
#include <semaphore>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

struct alignas(64) place {
    std::atomic<std::uint64_t> arrived{0};
    std::atomic<bool> acquiring{false};
    std::atomic<pid_t> id{0};
    std::atomic<bool> ended{false};
};

template <class Semaphore>
struct game {
    Semaphore semaphore{1};
    std::array<place, 2> places;
    std::atomic<bool> over{false};

    // False: the game is over.
    bool enter_phase(unsigned me, std::uint64_t phase) {
        places[me].arrived = phase;
        for (unsigned looks = 0; places[1 - me].arrived < phase; ++looks) {
            if (over) return false;
            if (looks > 1000) std::this_thread::yield();
        }
        return true;
    }

    void play(unsigned me) {
        std::minstd_rand random(me + 1);
        places[me].id = this_thread();
        for (std::uint64_t phase = 1; enter_phase(me, phase); ++phase) {
            const unsigned longest = phase % 2 == 0 ? 150 : 3000;
            if (me == 0) pause_for(random() % 3);
            places[me].acquiring.store(true, std::memory_order_relaxed);
            semaphore.acquire();
            places[me].acquiring.store(false, std::memory_order_relaxed);
            if (me == 1) pause_for(random() % longest);
            semaphore.release();
        }
        places[me].ended = true;
    }

    std::uint64_t progress() const { return places[0].arrived + places[1].arrived; }

    // The permit is free, and a thread sleeps in acquire(). Giving the permit back frees that thread.
    bool lost_a_wake_up() {
        const std::uint64_t before = progress();
        for (place& one : places) {
            const auto stuck = [&] { return one.acquiring && progress() == before; };
            if (!proven_to_hang(stat_of_thread(one.id), stuck) || !semaphore.try_acquire()) continue;
            const bool still = sleeps(stat_of_thread(one.id)) && stuck();
            semaphore.release();
            return still;
        }
        return false;
    }

    outcome watch(double seconds) {
        std::jthread first([this] { play(0); });
        std::jthread second([this] { play(1); });
        const budget time(seconds);
        outcome found;
        std::uint64_t last = 0;
        clock::time_point moved = clock::now();
        while (!places[0].ended || !places[1].ended) {
            std::this_thread::sleep_for(10ms);
            if (time.spent()) over = true;
            if (const std::uint64_t now = progress(); now != last) {
                last = now;
                moved = clock::now();
            } else if (clock::now() - moved > 500ms) {
                found.seen += lost_a_wake_up();
                moved = clock::now();
            }
        }
        found.tries = progress() / 2;
        return found;
    }
};

template <class Semaphore>
outcome play(double seconds, const std::string& version) {
    static game<Semaphore> it;
    outcome found = it.watch(seconds);
    found.version = version;
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    return run(
        count, arguments,
        [](double seconds) { return play<std::counting_semaphore<>>(seconds, libstdcxx()); },
        [](double seconds) { return play<tocsin::counting_semaphore<>>(seconds, "counting_semaphore"); });
}
