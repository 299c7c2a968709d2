// SPDX-License-Identifier: Apache-2.0
// Many threads post and send while the handler is closed or cancelled at some moment. Every accepted job runs once or
// is handed out once, and no other job is.
#include "random.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/handler_thread.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

// What only jobs touch: ThreadSanitizer reports jobs that run at the same time.
struct ledger {
    std::vector<int> last;  // of each producer
    std::uint64_t runs = 0;
    std::uint64_t out_of_order = 0;

    void enter(int producer, int number) {
        ++runs;
        int& before = last[static_cast<std::size_t>(producer)];
        if (number <= before) ++out_of_order;
        before = number;
    }
};

// Posts or sends one producer's jobs, and returns how many were accepted.
std::uint64_t produce(handler_thread& handler, ledger& book, random_source& random, int producer, int jobs) {
    std::uint64_t accepted = 0;
    try {
        for (int number = 1; number <= jobs; ++number) {
            const auto enter = [&book, producer, number] { book.enter(producer, number); };
            switch (random.below(8)) {
                case 0:
                    handler.send(enter);
                    ++accepted;
                    break;
                case 1:
                    EXPECT_EQ(handler.send([&] {
                        enter();
                        return number;
                    }),
                              number);
                    ++accepted;
                    break;
                case 2:
                    try {
                        handler.send([&] {
                            enter();
                            throw std::out_of_range("sent");
                        });
                        ADD_FAILURE() << "an exception was lost";
                    } catch (const std::out_of_range&) {
                        ++accepted;
                    }
                    break;
                case 3: accepted += handler.try_post(enter) == post_status::posted ? 1 : 0; break;
                case 4:
                    accepted += handler.post_for(enter, std::chrono::nanoseconds(random.below(50'000))) ==
                                        post_status::posted
                                    ? 1
                                    : 0;
                    break;
                case 5:  // too large to be stored inside the job
                    if (!handler.post([enter, ballast = std::vector<int>(3)] { enter(); })) return accepted;
                    ++accepted;
                    break;
                default:
                    if (!handler.post(enter)) return accepted;
                    ++accepted;
                    break;
            }
        }
    } catch (const handler_closed&) {
    }
    return accepted;
}

enum class ending : std::uint8_t { after_all, closed, cancelled };

void run_producers(std::size_t capacity, ending how) {
    for (const int producers : {1, 2, 8, 32}) {
        // After all jobs: in parts, each with the whole patience, because alongside other busy programs each job of a
        // full handler may take long.
        constexpr int parts = 10;
        const int jobs = rounds(20'000, 3'000) / producers / (how == ending::after_all ? parts : 1);
        const int repeats = how == ending::after_all ? parts : rounds(20, 4);
        std::uint64_t all_accepted = 0;
        std::uint64_t all_left = 0;
        for (int repeat = 0; repeat != repeats; ++repeat) {
            ledger book;
            book.last.resize(static_cast<std::size_t>(producers));
            std::atomic<std::uint64_t> accepted{0};
            std::uint64_t left_over = 0;
            {
                handler_thread handler({.capacity = capacity, .on_exception = {}});
                thread_group group;
                group.start_many(producers, "producer", [&, repeat](int number) {
                    random_source random(static_cast<std::uint64_t>(repeat * 1000 + number));
                    accepted += produce(handler, book, random, number, jobs);
                });
                if (how != ending::after_all) {
                    random_source random(static_cast<std::uint64_t>(repeat) + 77'777);
                    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3'000)));
                    if (how == ending::closed) {
                        handler.close();
                    } else {
                        // The handler has ended, so a job may run here as well.
                        for (tocsin::job& each : handler.cancel()) {
                            each();
                            ++left_over;
                        }
                    }
                }
                group.join();
            }
            EXPECT_EQ(book.runs, accepted.load());
            EXPECT_EQ(book.out_of_order, 0u);
            all_accepted += accepted.load();
            all_left += left_over;
        }
        std::printf("%d producers: %llu accepted, of them %llu handed out\n", producers,
                    static_cast<unsigned long long>(all_accepted), static_cast<unsigned long long>(all_left));
    }
}

constexpr auto unbounded = std::numeric_limits<std::size_t>::max();

TEST(HandlerThreadStress, UnboundedRunsEveryJobOnceAndInOrder) {
    run_producers(unbounded, ending::after_all);
}
TEST(HandlerThreadStress, BoundedRunsEveryJobOnceAndInOrder) { run_producers(4, ending::after_all); }
TEST(HandlerThreadStress, ACapacityOfOneLosesNobody) { run_producers(1, ending::after_all); }
TEST(HandlerThreadStress, AnUnboundedHandlerClosesCleanly) { run_producers(unbounded, ending::closed); }
TEST(HandlerThreadStress, ABoundedHandlerClosesCleanly) { run_producers(2, ending::closed); }
TEST(HandlerThreadStress, AnUnboundedHandlerHandsOutWhatItHasNotRun) {
    run_producers(unbounded, ending::cancelled);
}
TEST(HandlerThreadStress, ABoundedHandlerHandsOutWhatItHasNotRun) { run_producers(2, ending::cancelled); }

// The comments of a published event report this mistake: "1 case in tens of thousands the handler sleeps although the
// queue isn't empty". There a send's store to the queue and its check of the event are reordered.
TEST(HandlerThreadStress, ASendToAHandlerThatIsFallingAsleepWakesIt) {
    handler_thread handler;
    // In parts, each with the whole patience, because alongside other busy programs each send may take long.
    constexpr int parts = 20;
    for (int part = 0; part != parts; ++part) {
        thread_group group;
        group.start_many(2, "sender", [&](int) {
            for (int i = 0; i != rounds(200'000, 20'000) / parts; ++i)
                EXPECT_EQ(handler.send([i] { return i; }), i);
        });
    }
}

}  // namespace
