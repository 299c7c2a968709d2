// SPDX-License-Identifier: Apache-2.0
// A lock of one byte in each object, and a lock in one bit of a word that the program owns.
#include <tocsin/bit_lock.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>

struct account {
    tocsin::word_lock<std::uint8_t> mutex;
    int balance = 0;
};

int main() {
    account one;
    std::atomic<std::uint32_t> flags{5};  // bit 31 is the lock; the other bits remain ours
    int counted = 0;
    const auto work = [&] {
        for (int i = 0; i != 1000; ++i) {
            {
                const std::scoped_lock held(one.mutex);
                ++one.balance;
            }
            tocsin::bit_lock guard(flags, 31);
            const std::unique_lock held(guard);
            ++counted;
        }
    };
    std::thread other(work);
    work();
    other.join();
    std::printf("balance %d, counted %d, flags %u\n", one.balance, counted, flags.load());
    return one.balance == 2000 && counted == 2000 && flags == 5 ? 0 : 1;
}
