// SPDX-License-Identifier: Apache-2.0
// A signal handler sets an event after each single instruction of the call that it interrupts. In some cases it also
// releases a semaphore or counts a latch down. The code is what users run, and every instruction gets its turn: none is
// chosen at random.
//
// The processor's trap flag raises SIGTRAP after each instruction. The handler counts, and after the wanted one it does
// what the handler of a program would do. The event that it set must release its waiter although the interrupted thread
// does not call the library again: a deferred call is made before the interrupted one returns (signal_deferral-2).
#include "core/lot/resume_queue.hpp"
#include "core/sync/signal_deferral.hpp"
#include "facts.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/spin.hpp>

#include <gtest/gtest.h>

#if defined(__linux__) && defined(__x86_64__)

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include <signal.h>
#include <ucontext.h>

namespace {

using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;

constexpr greg_t trap_flag = 0x100;

// One run: the instruction after which the handler sets its event, and whether it still has to set another one, at the
// first instruction at which calls are deferred.
struct stepping {
    long steps = 0;
    long wanted = 0;
    bool first_inside = false;
};
stepping current;
auto_reset_event* set_inside = nullptr;
auto_reset_event* set_at_wanted = nullptr;
tocsin::counting_semaphore<>* released_at_wanted = nullptr;
tocsin::latch* counted_down_at_wanted = nullptr;

void after_an_instruction(int, siginfo_t*, void* context) {
    ++current.steps;
    if (current.first_inside && tocsin::core::signal_deferral::is_inside()) {
        current.first_inside = false;
        set_inside->set();
    }
    if (current.steps != current.wanted) return;
    set_at_wanted->set();
    if (released_at_wanted != nullptr) released_at_wanted->release();
    if (counted_down_at_wanted != nullptr) counted_down_at_wanted->count_down();
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

// Pushes beyond the red zone, which the compiler may use.
[[gnu::noinline]] void start_stepping() {
    asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
}
[[gnu::noinline]] void stop_stepping() {
    asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
}

struct permits : tocsin::counting_semaphore<> {
    permits() : counting_semaphore(0) {}
};

void take(auto_reset_event& event) { event.wait(tocsin::spin_policy::none()); }
void take(manual_reset_event& event) {
    event.wait(tocsin::spin_policy::none());
    event.reset();
}
void take(permits& some) { some.acquire(tocsin::spin_policy::none()); }

void give(auto_reset_event& event) { event.set(); }
void give(manual_reset_event& event) { event.set(); }
void give(permits& some) { some.release(); }

// A thread that waits again and again, and counts without the library's help.
template <class Event>
class waiter {
public:
    waiter() {
        thread_.start("waiter", [this] {
            for (;;) {
                take(event);
                if (over_.load()) return;
                released_.fetch_add(1);
            }
        });
    }
    ~waiter() {
        over_.store(true);
        give(event);
        thread_.join();
    }

    long released() const { return released_.load(); }
    void until_parked() const {
        support::until("its thread to be parked", [this] { return tocsin::waiting_on(&event) == 1; });
    }
    // Does not enter the library.
    void until_released(long before, long instruction) const {
        const std::string what =
            "the set after instruction " + std::to_string(instruction) + " to be carried out";
        support::until(what.c_str(), [&] { return released() != before; });
    }
    void until_released_so_often(long wanted) const {
        support::until("each release to be carried out once", [&] { return released() == wanted; });
    }

    Event event;

private:
    thread_group thread_;
    std::atomic<long> released_{0};
    std::atomic<bool> over_{false};
};

class SignalAtEachInstruction : public testing::Test {
protected:
    void SetUp() override {
        if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer delays signals";
        struct sigaction action = {};
        action.sa_sigaction = after_an_instruction;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGTRAP, &action, &before_);
        set_inside = &inside_.event;
        set_at_wanted = &also_.event;
        released_at_wanted = nullptr;
        counted_down_at_wanted = nullptr;
    }
    void TearDown() override {
        if (!support::thread_sanitizer) sigaction(SIGTRAP, &before_, nullptr);
    }

    // Calls `body` once for each of its instructions: the handler comes after the first, the second and so on. A debug
    // build has so many instructions that the test tries only some. AddressSanitizer's build has several times as many,
    // with the same steps of the algorithm between them: a fifth of the traced instructions is enough there.
    template <class Prepare, class Body, class Check>
    void at_each(bool twice, Prepare prepare, Body body, Check check) {
        const long length = run(0, twice, prepare, body, check);
        if (length == 0) GTEST_SKIP() << "no traps here";
        // A run traces all instructions up to the one after which it sets the event.
        const long stride = length < 1000 ? 1 : 1 + length * length / support::rounds(500'000, 100'000);
        for (long wanted = 1; wanted <= length; wanted += stride)
            (void)run(wanted, twice, prepare, body, check);
    }

    // Whether the handler has acted in this run.
    static bool was_interrupted() { return current.wanted != 0 && current.steps >= current.wanted; }

    waiter<auto_reset_event> also_;

private:
    waiter<auto_reset_event> inside_;

    template <class Prepare, class Body, class Check>
    long run(long wanted, bool twice, Prepare prepare, Body body, Check check) {
        also_.until_parked();
        inside_.until_parked();
        prepare();
        const long before = also_.released();
        const long before_inside = inside_.released();
        current = {.wanted = wanted, .first_inside = twice};
        start_stepping();
        body();
        stop_stepping();
        if (twice && !current.first_inside) inside_.until_released(before_inside, wanted);
        if (was_interrupted()) also_.until_released(before, wanted);
        check();
        return current.steps;
    }

    struct sigaction before_ = {};
};

TEST_F(SignalAtEachInstruction, OfASetThatReleases) {
    waiter<auto_reset_event> one;
    long before = 0;
    for (const bool twice : {false, true}) {
        at_each(
            twice,
            [&] {
                one.until_parked();
                before = one.released();
            },
            [&] { one.event.set(); }, [&] { one.until_released(before, current.wanted); });
    }
}

TEST_F(SignalAtEachInstruction, OfAGateThatOpens) {
    waiter<manual_reset_event> one;
    long before = 0;
    for (const bool twice : {false, true}) {
        at_each(
            twice,
            [&] {
                one.until_parked();
                before = one.released();
            },
            [&] { one.event.set(); }, [&] { one.until_released(before, current.wanted); });
    }
}

// The handler sets the same event: two sets, of which the waiter takes one or both.
TEST_F(SignalAtEachInstruction, OfASetOfTheSameEvent) {
    for (const bool twice : {false, true}) {
        at_each(twice, [] {}, [&] { also_.event.set(); }, [] {});
    }
}

// A reset of an event with waiters takes the lock as well.
TEST_F(SignalAtEachInstruction, OfAReset) {
    waiter<manual_reset_event> other;
    for (const bool twice : {false, true}) {
        at_each(twice, [&] { other.until_parked(); }, [&] { other.event.reset(); }, [] {});
    }
}

// The handler's set() begins and ends a scope of its own while the thread begins or ends one. (resume_queue-4)
TEST_F(SignalAtEachInstruction, OfAScopeThatDefersResumptions) {
    at_each(false, [] {}, [] { const tocsin::core::defer_resumes scope; }, [] {});
}

// The handler releases the same semaphore: the waiter gets both permits.
TEST_F(SignalAtEachInstruction, OfAReleaseOfTheSameSemaphore) {
    waiter<permits> one;
    released_at_wanted = &one.event;
    long before = 0;
    for (const bool twice : {false, true}) {
        at_each(
            twice,
            [&] {
                one.until_parked();
                before = one.released();
            },
            [&] { one.event.release(); },
            [&] { one.until_released_so_often(before + (was_interrupted() ? 2 : 1)); });
    }
}

// The handler releases a semaphore with a waiter while its thread is anywhere in the set of an event.
TEST_F(SignalAtEachInstruction, OfASetByARelease) {
    waiter<auto_reset_event> one;
    waiter<permits> other;
    released_at_wanted = &other.event;
    long before = 0, before_other = 0;
    for (const bool twice : {false, true}) {
        at_each(
            twice,
            [&] {
                one.until_parked();
                other.until_parked();
                before = one.released();
                before_other = other.released();
            },
            [&] { one.event.set(); },
            [&] {
                one.until_released(before, current.wanted);
                other.until_released_so_often(before_other + (was_interrupted() ? 1 : 0));
            });
    }
}

// The handler counts the same latch down. Either count may be the one that opens the latch.
TEST_F(SignalAtEachInstruction, OfACountDownOfTheSameLatch) {
    std::optional<tocsin::latch> both;
    std::optional<thread_group> waits;
    for (const bool twice : {false, true}) {
        at_each(
            twice,
            [&] {
                both.emplace(2);
                counted_down_at_wanted = &*both;
                waits.emplace();
                waits->start("waiter", [&] { both->wait(tocsin::spin_policy::none()); });
                support::until("its thread to be parked", [&] { return tocsin::waiting_on(&*both) == 1; });
            },
            [&] { both->count_down(); },
            [&] {
                EXPECT_EQ(both->try_wait(), was_interrupted());
                if (!was_interrupted()) both->count_down();
                waits->join();
            });
    }
}

// The wait queues its node, finds that its time is over, and removes the node.
TEST_F(SignalAtEachInstruction, OfAWaitThatTimesOut) {
    auto_reset_event never;
    for (const bool twice : {false, true}) {
        at_each(
            twice, [] {},
            [&] { (void)never.wait_for(std::chrono::nanoseconds(1), tocsin::spin_policy::none()); }, [] {});
    }
}

}  // namespace

#endif
