// Before main and after it, fork, signals, errno, threads that end, memory that goes away.
#include "child.hpp"
#include "facts.hpp"
#include "pages.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using support::rounds;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

// ---- before and after main ----------------------------------------------------------------------

// Sets, waits, resets, sleeps and, if it may start threads, wakes; false if anything is not as it should.
template <class Event>
bool everything_works_on(Event& event, bool with_threads = true) {
    event.reset();
    if (event.is_set() || event.try_wait()) return false;
    event.set();
    event.wait();
    event.reset();
    if (event.wait_for(100us) != wait_status::timed_out) return false;
    if (!with_threads) return true;
    std::atomic<bool> woke{false};
    std::thread waiter([&] {
        event.wait();
        woke.store(true);
    });
    until_parked(&event, 1);
    event.set();
    waiter.join();
    if (!woke.load()) return false;
    event.reset();
    std::atomic<std::uint16_t> word{0};
    std::thread sleeper([&] { (void)tocsin::wait_on_address(&word, std::uint16_t{0}); });
    until_parked(&word, 1);
    if (tocsin::wake_by_address_all(&word) != 1) return false;
    sleeper.join();
    return true;
}

constinit manual_reset_event global_gate;
constinit auto_reset_event global_token;
constinit tocsin::word_lock<> global_lock;
bool worked_before_main = false;
bool check_after_main = false;

#if defined(__EMSCRIPTEN__)
constexpr bool threads_before_main = false;  // one that is started begins when the first has come to its loop
#else
constexpr bool threads_before_main = true;
#endif

struct before_and_after_main {
    before_and_after_main() {
        const std::scoped_lock held(global_lock);
        worked_before_main = everything_works_on(global_gate, threads_before_main) &&
                             everything_works_on(global_token, threads_before_main);
    }
    ~before_and_after_main() {
        if (!check_after_main) return;
        const std::scoped_lock held(global_lock);
        if (!everything_works_on(global_gate) || !everything_works_on(global_token)) _exit(3);
        std::fputs("works after main\n", stderr);
    }
} before_and_after;

TEST(Events, WorkBeforeMain) { EXPECT_TRUE(worked_before_main); }

#if defined(GTEST_HAS_DEATH_TEST)
TEST(Events, WorkAfterMain) {
    testing::GTEST_FLAG(death_test_style) = "fast";
    EXPECT_EXIT(
        {
            check_after_main = true;
            std::atexit([] {
                if (!everything_works_on(global_gate)) _exit(4);
            });
            std::exit(0);
        },
        testing::ExitedWithCode(0), "works after main");
}
#endif

#if TOCSIN_ON_POSIX
struct thread_local_user {
    auto_reset_event* announce = nullptr;
    auto_reset_event* wait_for = nullptr;
    manual_reset_event own;
    bool* worked = nullptr;
    ~thread_local_user() {
        if (worked == nullptr) return;
        own.set();
        own.wait();
        announce->set();
        wait_for->wait();
        *worked = everything_works_on(own);
        own.reset();
    }
};
thread_local thread_local_user user;

TEST(Events, WorkInDestructorsOfThreadLocalObjects) {
    for (int round = 0; round < 20; ++round) {
        auto_reset_event announced;
        auto_reset_event go_on;
        bool worked = false;
        thread_group threads;
        threads.start("ending", [&] {
            user.announce = &announced;
            user.wait_for = &go_on;
            user.worked = &worked;
        });
        announced.wait();
        until_parked(&go_on, 1);
        go_on.set();
        threads.join();
        EXPECT_TRUE(worked);
    }
}
#endif

TEST(Events, WorkInDestructorsOfTheSystemsThreadData) {
    static pthread_key_t key;
    static auto_reset_event token;
    static std::atomic<int> worked{0};
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void*) {
                                     if (token.wait_for(50us) == wait_status::timed_out) worked.fetch_add(1);
                                     token.set();
                                     token.wait();
                                     worked.fetch_add(1);
                                 }),
              0);
    thread_group threads;
    threads.start("ending", [&] { pthread_setspecific(key, &key); });
    threads.join();
    EXPECT_EQ(worked.load(), 2);
    pthread_key_delete(key);
}

// ---- threads that end ---------------------------------------------------------------------------

TEST(Threads, MayEndRightAfterTheyWereReleasedAndRightAfterTheySet) {
    auto_reset_event token;
    auto_reset_event done;
    for (int round = 0; round < rounds(1000, 300); ++round) {
        std::thread waiter([&] {
            token.wait();
            done.set();
        });
        std::thread setter([&] { token.set(); });
        setter.join();
        done.wait();
        waiter.join();
    }
}

TEST(Threads, ManyGenerationsWaitOnTheSameStacks) {
    manual_reset_event event;
    auto_reset_event never_set;
    for (int generation = 0; generation < rounds(60, 20); ++generation) {
        thread_group threads;
        threads.start_many(8, "one of a generation", [&](int i) {
            if (i % 3 == 0) {
                EXPECT_EQ(never_set.wait_for(10us * i), wait_status::timed_out);
            }
            event.wait();
        });
        until_parked(&event, 8);
        event.set();
        event.reset();
        threads.join();
    }
}

#if TOCSIN_ON_POSIX
TEST(AProcess, MayEndInTheThreadThatWasReleased) {
    for (int round = 0; round < rounds(30, 6); ++round) {
        const auto ending = support::ending_of_child([&] {
            static auto_reset_event event;
            std::thread([&] {
                event.wait();
                if (round % 2 == 0) _exit(0);
                std::exit(0);  // with all destructors, while set() may still be under way
            }).detach();
            if (round % 3 != 0) until_parked(&event, 1);
            event.set();
            for (;;) pause();
            return 1;
        });
        ASSERT_EQ(ending, "");
    }
}
#endif

// ---- memory that goes away ----------------------------------------------------------------------

// Pages that are never mapped twice, so that a late touch of one cannot hit a later one.
class fresh_pages {
public:
    explicit fresh_pages(std::size_t count)
        : size_(support::page_size()),
          left_(count),
          first_(support::reserve_pages(size_ * count)),
          next_(static_cast<char*>(first_)) {}
    fresh_pages(const fresh_pages&) = delete;
    fresh_pages& operator=(const fresh_pages&) = delete;
    ~fresh_pages() { support::release_pages(first_, next_, size_ * left_); }

    void* take() {
        char* const page = next_;
        support::map_pages(page, size_);
        next_ += size_;
        --left_;
        return page;
    }
    void unmap(void* page) const { support::unmap_pages(page, size_); }

private:
    std::size_t size_;
    std::size_t left_;
    void* first_;
    char* next_;
};

template <class Event>
class EveryEventInUnmappedMemory : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(EveryEventInUnmappedMemory, both_events);

template <class Fact>
void poll(Fact holds) {
    for (int looks = 0; !holds(); ++looks) {
        if (looks > 300) std::this_thread::yield();
    }
}

// In turn: waits asleep or awake, polls is_set(), polls try_wait(); then unmaps the event at once.
TYPED_TEST(EveryEventInUnmappedMemory, IsNotTouchedOnceTheWaiterGoesOn) {
    const int count = rounds(10'000, 3'000);
    fresh_pages pages(static_cast<std::size_t>(count));
    std::atomic<TypeParam*> request{nullptr};
    thread_group threads;
    threads.start("setter", [&] {
        for (int i = 0; i < count; ++i) {
            TypeParam* event = nullptr;
            for (int looks = 0; (event = request.exchange(nullptr)) == nullptr; ++looks) {
                if (looks > 100) std::this_thread::yield();
            }
            if (i % 8 == 0) {
                support::until("parked", [&] { return tocsin::waiting_on(event) == 1 || i % 4 != 0; });
            }
            event->set();
        }
    });
    for (int i = 0; i < count; ++i) {
        auto* const event = new (pages.take()) TypeParam;
        const bool polls = i % 4 != 0 && i % 3 == 0;
        request.store(event);
        if (!polls) {
            event->wait(i % 2 == 0 ? tocsin::spin_policy::none() : tocsin::spin_policy());
        } else if (i % 2 == 0) {
            poll([&] { return event->is_set(); });
        } else {
            poll([&] { return event->try_wait(); });
        }
        pages.unmap(event);
    }
    threads.join();
}

TEST(AWordInUnmappedMemory, IsNotTouchedByALateWakeOrUnlock) {
    struct shared {
        std::atomic<std::uint32_t> word{0};
        tocsin::word_lock<std::uint8_t> lock;
    };
    const int count = rounds(4'000, 1'500);
    fresh_pages pages(static_cast<std::size_t>(count));
    std::atomic<shared*> request{nullptr};
    thread_group threads;
    threads.start("changes and unlocks", [&] {
        for (int i = 0; i < count; ++i) {
            shared* page = nullptr;
            while ((page = request.exchange(nullptr)) == nullptr) std::this_thread::yield();
            if (i % 2 == 0) {
                page->word.store(1, std::memory_order_release);
                tocsin::wake_by_address_all(&page->word);
            } else {
                page->lock.unlock();
            }
        }
    });
    for (int i = 0; i < count; ++i) {
        auto* const page = new (pages.take()) shared;
        if (i % 2 == 1) page->lock.lock();
        request.store(page);
        if (i % 2 == 0) {
            while (tocsin::wait_on_address(&page->word, 0u) != tocsin::address_status::differed) {
                if (page->word.load(std::memory_order_acquire) == 1) break;
            }
        } else {
            page->lock.lock();
        }
        pages.unmap(page);
    }
    threads.join();
}

#if TOCSIN_ON_POSIX
// ---- fork ---------------------------------------------------------------------------------------

// ThreadSanitizer can't follow a child that starts threads when its parent had several.
constexpr bool threads_in_child = !support::thread_sanitizer;

TEST(Fork, TheChildUsesFreshEvents) {
    thread_group threads;
    auto_reset_event waited;
    threads.start_many(3, "waiter of the parent", [&](int) { waited.wait(); });
    until_parked(&waited, 3);
    EXPECT_EQ(support::ending_of_child([] {
                  manual_reset_event gate;
                  auto_reset_event token;
                  if (!everything_works_on(gate, threads_in_child)) return 1;
                  if (!everything_works_on(token, threads_in_child)) return 2;
                  if (!everything_works_on(global_token, threads_in_child)) return 3;
                  return 0;
              }),
              "");
    for (int i = 0; i < 3; ++i) waited.set();
    threads.join();
}

// The waiters did not come along; the event did.
template <class Event>
int use_an_event_that_had_waiters(Event& event) {
    event.set();
    if (!event.is_set()) return 1;
    if (!event.try_wait()) return 2;
    event.reset();
    if (event.is_set()) return 3;
    if (tocsin::waiting_on(&event) != 0) return 4;
    if (event.wait_for(1ms) != wait_status::timed_out) return 5;
    if (!everything_works_on(event, threads_in_child)) return 6;
    return 0;
}

TEST(Fork, TheChildUsesEventsThatHadWaitersInTheParent) {
    manual_reset_event gate;
    auto_reset_event token;
    thread_group threads;
    threads.start_many(3, "at the gate", [&](int) { gate.wait(); });
    threads.start_many(3, "for the token", [&](int) { token.wait(); });
    until_parked(&gate, 3);
    until_parked(&token, 3);
    EXPECT_EQ(support::ending_of_child([&] { return use_an_event_that_had_waiters(gate); }), "");
    EXPECT_EQ(support::ending_of_child([&] { return use_an_event_that_had_waiters(token); }), "");
    EXPECT_EQ(tocsin::waiting_on(&gate), 3u) << "the parent's waiters are the parent's";
    EXPECT_EQ(tocsin::waiting_on(&token), 3u);
    gate.set();
    for (int i = 0; i < 3; ++i) token.set();
    threads.join();
}

TEST(Fork, TheChildUsesAddressesAndLocksThatHadWaitersInTheParent) {
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    lock.lock();
    thread_group threads;
    threads.start("on the address", [&] { (void)tocsin::wait_on_address(&word, 0u); });
    threads.start("on the lock", [&] { lock.lock(), lock.unlock(); });
    until_parked(&word, 1);
    until_parked(&lock, 1);
    EXPECT_EQ(support::ending_of_child([&] {
                  if (tocsin::wake_by_address_all(&word) != 0) return 1;
                  lock.unlock();  // the child's only thread is a copy of the one that holds it
                  if (!lock.try_lock()) return 2;
                  if (lock.try_lock_for(1ms)) return 3;
                  lock.unlock();
                  return 0;
              }),
              "");
    EXPECT_EQ(tocsin::wake_by_address_all(&word), 1u);
    lock.unlock();
    threads.join();
}

// Forks at any moment of a storm: whatever another thread held inside the library at that moment must
// not stop the child.
TEST(Fork, InTheMiddleOfEverythingLeavesTheChildUsable) {
    std::array<auto_reset_event, 64> events;
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(3, "storm", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 600);
        while (!enough.load()) {
            auto& event = events[random.below(events.size())];
            if (random.one_in(2)) event.set();
            (void)event.wait_for(nanoseconds(random.below(20'000)));
        }
    });
    for (int i = 0; i < rounds(150, 30); ++i) {
        const auto ending = support::ending_of_child([&] {
            alarm(60);
            for (auto& each : events) {
                each.set();
                if (!each.try_wait()) return 1;
                if (each.wait_for(1us) != wait_status::timed_out) return 2;
            }
            if (i % 10 == 0 && !everything_works_on(global_gate, threads_in_child)) return 3;
            return 0;
        });
        ASSERT_EQ(ending, "");
    }
    enough.store(true);
    threads.join();
}

TEST(Fork, AChildOfAChildIsNoDifferent) {
    EXPECT_EQ(support::ending_of_child([] {
                  thread_group threads;
                  static manual_reset_event gate;
                  threads.start("waiter", [] { gate.wait(); });
                  until_parked(&gate, 1);
                  const auto ending =
                      support::ending_of_child([] { return use_an_event_that_had_waiters(gate); });
                  gate.set();
                  threads.join();
                  return ending.empty() ? 0 : 1;
              }),
              "");
}

// ---- signals and errno --------------------------------------------------------------------------

TEST(Signals, DoNotEndAWaitNorChangeErrno) {
    const support::signal_counter signals(SIGUSR1);
    auto_reset_event event;
    manual_reset_event gate;
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    std::stop_source stop;
    lock.lock();
    thread_group threads;
    const auto keeps_errno = [](auto wait) {
        errno = 4242;
        wait();
        EXPECT_EQ(errno, 4242);
    };
    threads.start("event", [&] { keeps_errno([&] { event.wait(); }); });
    threads.start("gate, timed",
                  [&] { keeps_errno([&] { EXPECT_EQ(gate.wait_for(1h), wait_status::signaled); }); });
    threads.start("gate, stoppable", [&] {
        keeps_errno([&] { EXPECT_EQ(gate.wait(stop.get_token()), wait_status::signaled); });
    });
    threads.start("address", [&] {
        keeps_errno([&] { EXPECT_EQ(tocsin::wait_on_address(&word, 0u), tocsin::address_status::woken); });
    });
    threads.start("lock", [&] { keeps_errno([&] { lock.lock(), lock.unlock(); }); });
    until_parked(&event, 1);
    until_parked(&gate, 2);
    until_parked(&word, 1);
    until_parked(&lock, 1);
    for (int i = 0; i < 40; ++i) {
        const long before = signals.count();
        for (std::size_t t = 0; t < threads.size(); ++t) pthread_kill(threads.handle(t), SIGUSR1);
        if (support::freezer::works) {
            support::until("the signals are handled", [&] { return signals.count() >= before + 5; });
        }
    }
    for (std::size_t t = 0; t < threads.size(); ++t) threads.until_asleep(t);
    EXPECT_EQ(threads.finished(), 0u);
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    EXPECT_EQ(tocsin::waiting_on(&gate), 2u);
    EXPECT_EQ(tocsin::waiting_on(&word), 1u);
    EXPECT_EQ(tocsin::waiting_on(&lock), 1u);
    event.set();
    gate.set();
    EXPECT_EQ(tocsin::wake_by_address_all(&word), 1u);
    lock.unlock();
    threads.join();
}
#endif

TEST(Errno, IsLeftAloneByEveryCall) {
    manual_reset_event gate;
    auto_reset_event token;
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    tocsin::bit_lock bit(word, 4);
    std::stop_source stop;
    stop.request_stop();
    const auto keeps_errno = [](const char* name, auto call) {
        for (const int value : {0, EINTR, ETIMEDOUT, 4242}) {
            errno = value;
            call();
            EXPECT_EQ(errno, value) << name;
        }
    };
    keeps_errno("set", [&] { gate.set(), token.set(), token.set(); });
    keeps_errno("is_set", [&] { (void)gate.is_set(); });
    keeps_errno("try_wait", [&] { (void)token.try_wait(); });
    keeps_errno("reset", [&] { gate.reset(), token.reset(); });
    keeps_errno("wait_for", [&] { (void)token.wait_for(100us); });
    keeps_errno("wait_for 0", [&] { (void)token.wait_for(0s); });
    keeps_errno("wait_until", [&] { (void)gate.wait_until(std::chrono::system_clock::now() + 100us); });
    keeps_errno("stopped wait", [&] { (void)gate.wait(stop.get_token()); });
    keeps_errno("wait_on_address", [&] { (void)tocsin::wait_on_address(&word, 0u, 100us); });
    keeps_errno("wake", [&] { tocsin::wake_by_address_all(&word); });
    keeps_errno("lock", [&] { lock.lock(), (void)lock.try_lock_for(100us), lock.unlock(); });
    keeps_errno("bit", [&] { bit.lock(), (void)bit.try_lock_for(100us), bit.unlock(); });
    keeps_errno("waiting_on", [&] { (void)tocsin::waiting_on(&word); });
    thread_group threads;
    for (int i = 0; i < 4; ++i) {
        threads.start("waiter", [&] { keeps_errno("wait", [&] { token.wait(); }); });
    }
    for (int i = 0; i < 4; ++i) {
        until_parked(&token, 4);
        keeps_errno("waking set", [&] { token.set(); });
    }
    threads.join();
}

}  // namespace
