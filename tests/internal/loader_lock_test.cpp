// SPDX-License-Identifier: Apache-2.0
// A thread that loads a plug-in holds a lock of the dynamic linker while the plug-in's constructors run. The first use
// of a background thread takes that lock, too. While it waits for it, it must hold no lock of the library that a
// constructor may need.
#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using start_function = void();

std::atomic<start_function*> in_the_constructor{nullptr};
std::atomic<bool> hangs{false};

}  // namespace

// Stands in for the system's dlopen(). That one would wait here until another thread has run a plug-in's constructor.
extern "C" void* dlopen(const char*, int) noexcept {
    start_function* const construct = in_the_constructor.exchange(nullptr);
    if (construct == nullptr) return nullptr;
    std::promise<void> loaded;
    const std::future<void> is_loaded = loaded.get_future();
    std::thread([construct, loaded = std::move(loaded)]() mutable {
        construct();
        loaded.set_value();
    }).detach();
    hangs.store(is_loaded.wait_for(10s) != std::future_status::ready);
    return nullptr;
}

namespace {

// Ends the process: with 0 if both threads have got through. What `start` makes is never destroyed, since the
// background thread uses it until the end.
void load_while_starting(start_function* start) {
    in_the_constructor.store(start);
    start();
    const char* const failed = in_the_constructor.load() != nullptr ? "nothing asked the dynamic linker"
                               : hangs.load() ? "the constructor waits for the thread that waits for it"
                                              : nullptr;
    if (failed != nullptr) std::fprintf(stderr, "%s\n", failed);
    std::fflush(nullptr);
    std::_Exit(failed == nullptr ? 0 : 1);
}

class LoaderLockDeathTest : public testing::Test {
protected:
    LoaderLockDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

struct nothing {
    void operator()(tocsin::any_result) const noexcept {}
};

TEST_F(LoaderLockDeathTest, IsTakenUnderNoLockOfTheTimers) {
    EXPECT_EXIT(load_while_starting([] {
                    static tocsin::auto_reset_event never;
                    auto* const wait =
                        new auto(tocsin::any_operation(nothing(), {.until = std::chrono::hours(1)}, never));
                    wait->start();
                }),
                testing::ExitedWithCode(0), "");
}

TEST_F(LoaderLockDeathTest, IsTakenUnderNoLockOfThePolls) {
    EXPECT_EXIT(load_while_starting([] {
                    int ends[2];
                    if (::pipe(ends) != 0) std::abort();
                    auto* const wait = new auto(tocsin::any_operation(nothing(), tocsin::readable(ends[0])));
                    wait->start();
                }),
                testing::ExitedWithCode(0), "");
}

TEST_F(LoaderLockDeathTest, IsTakenUnderNoLockOfTheWatchdogs) {
    EXPECT_EXIT(load_while_starting([] {
                    (void)new auto(tocsin::report_waits_longer_than(std::chrono::hours(1),
                                                                    [](const tocsin::parked_wait&) {}));
                }),
                testing::ExitedWithCode(0), "");
}

}  // namespace
