// SPDX-License-Identifier: Apache-2.0
// Whether a thread that waits for permits of a semaphore yields before it queues.
//
// Once threads are queued, each release hands its permit to the oldest of them, and nobody uses the permit until that
// thread runs. If each thread holds a permit only for a moment, gives it back and wants it again, all threads queue
// again and again. Each use then takes as long as waking a thread. A thread that yields instead of queueing lets the
// holder finish, and then finds the permit free: nobody is woken, and the queue stays empty.
//
// If permits are held for longer than waking a thread takes, there is little to gain, and a yield may let an unrelated
// thread run for milliseconds. The same is true where some threads wait and others release, as consumers and producers
// do. So yields begin when a thread that was queued for a permit hands it on within `brief` of running again. They end
// when too many waits have yielded and then slept, or have been late. Every 33rd such use fills the credit again, used
// up or not.
//
// One object serves all semaphores of a class (spinner.cpp). It decides how soon a thread queues, and so who is served
// first, but it never costs or adds a permit. All accesses are relaxed: a race loses an update, nothing more.
//
// Checked by: tests/internal/semaphore_credit_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

namespace tocsin::core {

class semaphore_credit {
public:
    static constexpr unsigned max_yields = 8;
    static constexpr std::uint32_t brief = 4'000;  // nanoseconds

    // Below, `mark` tells the calling thread from most others, and `now` is a time in nanoseconds that wraps around.

    // The thread was queued, has been handed its permits, and runs again.
    void begin_use(std::uint16_t mark, std::uint32_t now) noexcept {
        fields next = read();
        next.holder = mark;
        next.since = now;
        write(next);
    }
    // The thread is about to hand permits to queued threads.
    void end_use(std::uint16_t mark, std::uint32_t now) noexcept {
        fields next = read();
        if (next.holder != mark || now - next.since > brief) return;
        if (next.passed_over != 0) {
            --next.passed_over;
        } else {
            next.credit = max_credit;
            next.passed_over = uses_between;
        }
        write(next);
    }

    // Whether the next thread yields.
    bool allows() const noexcept { return read().credit != 0; }
    // Learns from a wait that has yielded. `taken`: it took its permits between yields. `late`: one yield took long.
    void learn(bool taken, bool late) noexcept {
        const int change = taken ? late ? -1 : 1 : late ? -4 : -2;
        fields next = read();
        next.credit = static_cast<std::uint8_t>(std::clamp(next.credit + change, 0, max_credit));
        write(next);
    }

private:
    // Chosen by trials, not one by one: docs/decisions/0028-semaphores.md.
    static constexpr int max_credit = 200;
    static constexpr std::uint8_t uses_between = 32;

    struct fields {
        std::uint16_t holder;  // the mark of the thread that was last handed permits in the queue
        std::uint8_t credit;
        std::uint8_t passed_over;  // how many brief uses do not fill the credit before the next that does
        std::uint32_t since;       // when the holder ran again, with its permits
    };

    fields read() const noexcept {
        return std::bit_cast<fields>(word_.load(std::memory_order_relaxed));  // no order: a guess
    }
    void write(fields next) noexcept {
        const auto word = std::bit_cast<std::uint64_t>(next);
        // No order: a guess. Written only if it changes, so that many threads can share the cache line.
        if (word_.load(std::memory_order_relaxed) != word) word_.store(word, std::memory_order_relaxed);
    }

    detail::atomic<std::uint64_t> word_{0};
};

}  // namespace tocsin::core
