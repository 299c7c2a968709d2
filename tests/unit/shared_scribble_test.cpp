// SPDX-License-Identifier: Apache-2.0
// Processes work with shared objects while one of them writes anything into the memory, at any time. Whatever the calls
// return or throw, none crashes, and all of them return.
#include "sanitizer.hpp"
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;

struct board {
    tocsin::shared_manual_reset_event gate;
    tocsin::shared_auto_reset_event token;
    tocsin::shared_semaphore permits;
    tocsin::shared_lock lock;
};

void call(auto what) {
    try {
        what();
    } catch (const std::system_error&) {  // a named error is an answer
    }
}

void work(board& all, unsigned self, int rounds) {
    for (int i = 0; i != rounds; ++i) {
        call([&] { (void)all.gate.wait_for(10us); });
        call([&] { (void)all.token.wait_for(10us); });
        call([&] { (void)all.permits.try_acquire_for(10us); });
        call([&] {
            const tocsin::lock_status how = all.lock.try_lock_for(10us);
            if (how == tocsin::lock_status::owner_died) all.lock.mark_repaired();
        });
        call([&] { all.lock.unlock(); });
        call([&] { all.token.set(); });
        call([&] { all.permits.release(1 + self); });
        all.gate.set();
        all.gate.reset();
        all.token.reset();
    }
}

void scribble(board& all, std::uint64_t seed, const std::atomic<bool>& ends) {
    auto* const words = reinterpret_cast<std::atomic<std::uint32_t>*>(&all);
    const auto draw = [&seed] {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed;
    };
    const std::uint32_t likely[] = {0,           1,           2,           3,          0xFFFF'FFFF,
                                    0x4000'0000, 0xC000'0000, 0x2000'0005, 0x0001'0401};
    while (!ends) {
        const std::uint64_t drawn = draw();
        // Mostly the headers and the first slots, which are in use.
        const std::size_t place = (drawn & 3) != 0 ? std::size_t{drawn >> 2 & 3} * 512 + (drawn >> 8) % 64
                                                   : (drawn >> 8) % (sizeof(board) / 4);
        const auto value = static_cast<std::uint32_t>(draw());
        words[place < sizeof(board) / 4 ? place : 0] =
            (drawn & 64) != 0 ? likely[value % std::size(likely)] : value;
        if ((drawn & 0x1F80) == 0) std::this_thread::yield();
    }
}

TEST(SharedScribble, NobodyCrashesAndAllCallsReturn) {
    // TOCSIN_SCRIBBLE_ROUNDS in the environment makes a long run.
    const char* const given = std::getenv("TOCSIN_SCRIBBLE_ROUNDS");
    const int rounds = given != nullptr ? std::atoi(given) : support::rounds(300, 50);
    placed_bytes<board> memory;
    board& all = *memory;
    std::vector<pid_t> children;
    for (unsigned i = 0; i != 4; ++i) {
        children.push_back(in_child([&] {
            std::thread other([&] { work(all, i, rounds); });
            work(all, i, rounds);
            other.join();
        }));
    }
    std::atomic<bool> ends{false};
    std::thread scribbler([&] { scribble(all, 0x9E37'79B9'7F4A'7C15u, ends); });
    for (const pid_t child : children) {
        int status = -1;
        EXPECT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
        if (status == -1) kill_now(child);
        EXPECT_EQ(status, 0);
    }
    ends = true;
    scribbler.join();
}

}  // namespace
