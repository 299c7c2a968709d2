// SPDX-License-Identifier: Apache-2.0
// What src/platform/poller/poller.hpp promises of doorbells, for every backend that builds on this machine.
#include "child.hpp"
#include "facts.hpp"
#include "platform/poller/doorbells.hpp"
#include "pollers.hpp"
#include "random.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace {

using namespace std::chrono_literals;
using namespace pollers;
using std::chrono::system_clock;
using support::rounds;
using support::thread_group;
using support::until_sound_asleep;

template <class Backend>
class EveryPoller : public testing::Test {};
TYPED_TEST_SUITE(EveryPoller, backends);

TYPED_TEST(EveryPoller, ARingBeforeThePollIsNotLostAndEndsOnePoll) {
    const taken_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);  // an earlier owner may have been rung
    for (int turn = 0; turn < 5; ++turn) {
        EXPECT_FALSE(is_rung<TypeParam>(bell, 0s));
        for (int i = 0; i <= turn; ++i) TypeParam::ring_doorbell(bell);
        EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
    }
    EXPECT_FALSE(is_rung<TypeParam>(bell, 1ms));
}

TYPED_TEST(EveryPoller, ARingEndsTheSleep) {
    std::atomic<doorbell_id> id{no_doorbell};
    std::atomic<int> wanted{0};
    thread_group threads;
    threads.start("sleeper", [&] {
        const taken_bell<TypeParam> bell;
        id.store(bell);
        for (int i = 1; i <= 4; ++i) {
            while (wanted.load() < i) (void)is_rung<TypeParam>(bell, deadline::never());
        }
    });
    for (int i = 1; i <= 4; ++i) {
        until_sound_asleep(threads.id(0));
        wanted.store(i);
        TypeParam::ring_doorbell(id.load());
    }
    threads.join();
}

TYPED_TEST(EveryPoller, ARingAndADescriptorAreBothReported) {
    const both_ends pipe = make_pipe();
    pipe.put();
    const taken_bell<TypeParam> bell;
    TypeParam::ring_doorbell(bell);
    poll_entry one{pipe.read, readiness::readable};
    const auto result = poll_one<TypeParam>(one, deadline::never(), bell);
    EXPECT_EQ(result.ready, 1u);
    EXPECT_TRUE(result.rung);
}

std::atomic<doorbell_id> rung_in_handler{no_doorbell};

TYPED_TEST(EveryPoller, MayBeRungInASignalHandler) {
    const taken_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    rung_in_handler.store(bell);
    const support::handled_signal handled(SIGUSR1,
                                          [](int) { TypeParam::ring_doorbell(rung_in_handler.load()); });
    raise(SIGUSR1);
    EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
}

TYPED_TEST(EveryPoller, AThreadKeepsItsDoorbellAndNestedOnesDiffer) {
    doorbell_id first{};
    {
        const taken_bell<TypeParam> outer;
        const taken_bell<TypeParam> inner;
        EXPECT_NE(doorbell_id{outer}, doorbell_id{inner});
    }
    {
        const taken_bell<TypeParam> one;
        first = one;
    }
    const std::size_t before = open_descriptors();
    const taken_bell<TypeParam> again;
    EXPECT_EQ(doorbell_id{again}, first);
    EXPECT_EQ(open_descriptors(), before);
}

TYPED_TEST(EveryPoller, DoorbellsOfEndedThreadsAreUsedAgain) {
    const auto use_one = [] {
        doorbell_id id{};
        std::thread([&] {
            const taken_bell<TypeParam> bell;
            id = bell;
        }).join();
        return id;
    };
    const doorbell_id first = use_one();
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(use_one(), first);
    EXPECT_EQ(open_descriptors(), before);
}

// At most so many descriptors are open for doorbells that nobody has.
constexpr std::size_t max_idle_descriptors = 2 * platform::doorbell_pool::max_idle;

TYPED_TEST(EveryPoller, DoorbellsOfManyEndedThreadsAreClosed) {
    const std::size_t before = open_descriptors();
    std::atomic<int> waiting{0};
    std::atomic<bool> all{false};
    thread_group threads;
    threads.start_many(40, "user", [&](int) {
        const taken_bell<TypeParam> bell;
        TypeParam::ring_doorbell(bell);
        EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
        waiting.fetch_add(1);
        support::until("all have one", [&] { return all.load(); });
    });
    support::until("all have one", [&] { return waiting.load() == 40; });
    EXPECT_GE(open_descriptors(), before + 40 - platform::doorbell_pool::max_idle);
    all.store(true);
    threads.join();
    EXPECT_LE(open_descriptors(), before + max_idle_descriptors);
}

TYPED_TEST(EveryPoller, DoorbellsOfManyDestroyedSetsAreClosed) {
    const std::size_t before = open_descriptors();
    {
        std::vector<std::unique_ptr<poll_set>> sets;
        for (int i = 0; i != 40; ++i) {
            sets.push_back(open_set<TypeParam>());
            std::array<poll_set::item, 1> none;
            (void)sets.back()->wait(none, 0s);
        }
        EXPECT_GE(open_descriptors(), before + 40);
    }
    EXPECT_LE(open_descriptors(), before + max_idle_descriptors);
}

// Rings that come late, while their doorbell is closed or is open again for somebody else.
TYPED_TEST(EveryPoller, ALateRingOfAClosedDoorbellReachesNoStranger) {
    std::vector<doorbell_id> gone;
    {
        std::vector<std::unique_ptr<taken_bell<TypeParam>>> bells;
        for (int i = 0; i != 40; ++i) {
            bells.push_back(std::make_unique<taken_bell<TypeParam>>());
            gone.push_back(*bells.back());
        }
    }
    std::vector<both_ends> strangers;
    for (int i = 0; i != 40; ++i) strangers.push_back(make_pipe());
    for (const doorbell_id each : gone) TypeParam::ring_doorbell(each);
    for (const both_ends& each : strangers) {
        EXPECT_EQ(state_of<TypeParam>(each.read, readiness::readable), readiness::none);
    }
    for (int round = 0; round != 3; ++round) {
        std::vector<std::unique_ptr<taken_bell<TypeParam>>> again;
        for (int i = 0; i != 40; ++i) {
            again.push_back(std::make_unique<taken_bell<TypeParam>>());
            const auto& bell = *again.back();
            (void)is_rung<TypeParam>(bell, 0s);  // it may have been rung for the last owner
            for (int turn = 0; turn != 1 + i % 3; ++turn) {
                EXPECT_FALSE(is_rung<TypeParam>(bell, 0s));
                TypeParam::ring_doorbell(bell);
                EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
            }
        }
    }
}

// Threads that come and go, each with a bell that others ring at any time.
TYPED_TEST(EveryPoller, NoRingIsLostWhileDoorbellsAreClosedAndOpened) {
    constexpr int places = 16;  // more than stay open
    const int count = rounds(400, 60);
    std::array<std::atomic<doorbell_id>, places> bells;
    std::array<std::atomic<int>, places> wanted{};
    for (auto& each : bells) each.store(no_doorbell);
    std::atomic<int> done{0};
    thread_group threads;
    threads.start_many(places, "owner", [&](int number) {
        const auto self = static_cast<std::size_t>(number);
        for (int i = 1; i <= count; ++i) {
            std::thread([&] {
                const taken_bell<TypeParam> bell;
                bells[self].store(bell);
                while (wanted[self].load(std::memory_order_relaxed) < i) {
                    (void)is_rung<TypeParam>(bell, deadline::never());
                }
            }).join();
        }
        done.fetch_add(1);
    });
    threads.start_many(2, "ringer", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 77);
        while (done.load() != places) {
            const std::size_t whom = random.below(places);
            if (number == 0) wanted[whom].fetch_add(1, std::memory_order_relaxed);
            TypeParam::ring_doorbell(bells[whom].load());
        }
    });
    threads.join();
}

#if TOCSIN_CHECKED
// Calls `open_bell` and returns its result. Then the program has another file in place of each descriptor that this
// opened, as after closefrom() and open(). Use it in a child.
template <class Backend>
auto with_replaced_bell(auto open_bell) {
    Backend::after_fork();
    const int other = open("/", O_RDONLY | O_CLOEXEC);
    const auto is_open = [](int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; };
    std::array<bool, 64> before{};
    for (int each = 0; each != 64; ++each) before[static_cast<std::size_t>(each)] = is_open(each);
    auto opened = open_bell();
    for (int each = 0; each != 64; ++each)
        if (is_open(each) && !before[static_cast<std::size_t>(each)]) dup2(other, each);
    return opened;
}

TYPED_TEST(EveryPoller, ADescriptorThatTheProgramClosedIsNoticed) {
    constexpr const char* message = "closed a descriptor that tocsin opened";
    const auto take = [] { return TypeParam::take_doorbell().id; };
    const auto wait_in_a_set = [] {
        const auto set = with_replaced_bell<TypeParam>(open_set<TypeParam>);
        std::array<poll_set::item, 4> items;
        (void)set->wait(items, 1s);
    };
    EXPECT_DEATH_IF_SUPPORTED(TypeParam::ring_doorbell(with_replaced_bell<TypeParam>(take)), message);
    EXPECT_DEATH_IF_SUPPORTED((void)is_rung<TypeParam>(with_replaced_bell<TypeParam>(take), 1s), message);
    EXPECT_DEATH_IF_SUPPORTED(wait_in_a_set(), message);
}
#endif

template <class Backend>
struct late_user {
    ~late_user() {
        const taken_bell<Backend> bell;
        Backend::ring_doorbell(bell);
        EXPECT_TRUE(is_rung<Backend>(bell, deadline::never()));
    }
};

TYPED_TEST(EveryPoller, LaterDestructorsOfAThreadStillWait) {
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 10; ++i) {
        std::thread([] {
            thread_local late_user<TypeParam> late;  // made first, so destroyed last
            (void)&late;
            const taken_bell<TypeParam> bell;
        }).join();
    }
    EXPECT_LE(open_descriptors(), before + 2);  // one doorbell, for all of them
}

TYPED_TEST(EveryPoller, ALateRingReachesAtMostTheNextOwner) {
    doorbell_id gone{};
    std::thread([&] {
        const taken_bell<TypeParam> bell;
        gone = bell;
    }).join();
    TypeParam::ring_doorbell(gone);
    const both_ends stranger = make_pipe();
    TypeParam::ring_doorbell(gone);
    EXPECT_EQ(state_of<TypeParam>(stranger.read, readiness::readable), readiness::none);
    std::thread([&] {
        const taken_bell<TypeParam> next;
        (void)is_rung<TypeParam>(next, 0s);  // it may have been rung for the last owner
        EXPECT_FALSE(is_rung<TypeParam>(next, 0s));
        TypeParam::ring_doorbell(next);
        EXPECT_TRUE(is_rung<TypeParam>(next, deadline::never()));
    }).join();
    TypeParam::ring_doorbell(no_doorbell);
    TypeParam::ring_doorbell(no_doorbell - 1);
}

// A process may be the last of a long chain of forks. Doorbells must be found as before, and none may have the number
// that means no doorbell.
TEST(DoorbellPool, FindsDoorbellsByNumberAfterAnyNumberOfForks) {
    static platform::doorbell_pool pool;
    const auto make = [](int (&ends)[2]) { return pipe(ends) == 0 ? 0 : errno; };
    doorbell_id before = no_doorbell;
    for (doorbell_id forks = 0; forks != platform::doorbell_pool::max_forks + 3; ++forks) {
        if (forks % 10'000 == 0 || forks + 3 >= platform::doorbell_pool::max_forks) {
            const auto made = pool.acquire(make);
            ASSERT_EQ(made.error, 0);
            EXPECT_NE(made.id, no_doorbell);
            EXPECT_EQ(pool.find(made.id), &pool[made.id]) << forks;
            EXPECT_EQ(pool.find(no_doorbell), nullptr) << forks;
            EXPECT_EQ(pool.find(before), nullptr) << forks;  // at first no_doorbell
            before = made.id;
        }
        pool.forget();
    }
}

TYPED_TEST(EveryPoller, NoDescriptorLeftIsAnErrorThatLosesNothing) {
    EXPECT_EQ(support::ending_of_child([] {
                  TypeParam::after_fork();
                  {
                      const taken_bell<TypeParam> kept;
                      // Its bell goes into the pool. (UndefinedBehaviorSanitizer opens a pipe to look at an object of
                      // a type that is new to it; now it has seen this one.)
                      (void)open_set<TypeParam>();
                  }
                  exhaust_descriptors();
                  errno = 55;
                  const auto kept = TypeParam::take_doorbell();
                  if (kept.error != 0 || TypeParam::take_doorbell().error != 0) return 1;
                  const auto more = TypeParam::take_doorbell();
                  if (more.error != EMFILE || more.id != no_doorbell) return 2;
                  int error = 0;
                  if (TypeParam::open_poll_set(error) != nullptr || error != EMFILE) return 3;
                  if (errno != 55) return 4;
                  TypeParam::ring_doorbell(kept.id);
                  if (!TypeParam::poll({}, kept.id, deadline::never()).rung) return 5;
                  TypeParam::ring_doorbell(kept.id);
                  // A deadline on the system clock needs one more descriptor. What is ready already is found without
                  // it.
                  if (!TypeParam::poll({}, kept.id, system_clock::now() + 1h).rung) return 6;
                  const auto failed = TypeParam::poll({}, kept.id, system_clock::now() + 1h);
                  return failed.error == EMFILE && !failed.timed_out ? 0 : 7;
              }),
              "");
}

TYPED_TEST(EveryPoller, AChildHasDoorbellsOfItsOwn) {
    const taken_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    const doorbell_id parents = bell;
    auto set = open_set<TypeParam>();
    const std::size_t before = open_descriptors();
    EXPECT_EQ(support::ending_of_child([&] {
                  TypeParam::after_fork();
                  if (open_descriptors() >= before) return 1;
                  TypeParam::ring_doorbell(parents);  // the parent's doorbell, unknown here: does nothing
                  set = nullptr;
                  const auto own = TypeParam::take_doorbell();
                  if (own.error != 0) return 2;
                  if (!TypeParam::poll({}, own.id, 0s).timed_out) return 3;
                  TypeParam::ring_doorbell(own.id);
                  if (!TypeParam::poll({}, own.id, deadline::never()).rung) return 4;
                  TypeParam::give_doorbell_back(own.id);
                  TypeParam::after_fork();  // as another copy of the library does: harmless
                  const auto again = TypeParam::take_doorbell();
                  TypeParam::ring_doorbell(again.id);
                  return TypeParam::poll({}, again.id, deadline::never()).rung ? 0 : 5;
              }),
              "");
    EXPECT_FALSE(is_rung<TypeParam>(bell, 0s));
    TypeParam::ring_doorbell(bell);
    EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
}

// One ring ends each wait; if a ring were lost, its wait would hang.
TYPED_TEST(EveryPoller, NoRingIsLostInAPingPong) {
    const int count = rounds(20'000, 4'000);
    const auto set = open_set<TypeParam>();
    std::atomic<int> there{0};
    std::atomic<int> back{0};
    const taken_bell<TypeParam> own;
    thread_group threads;
    threads.start("answers", [&] {
        std::array<poll_set::item, 4> items;
        for (int i = 1; i <= count; ++i) {
            while (there.load(std::memory_order_relaxed) < i) (void)set->wait(items, deadline::never());
            back.store(i, std::memory_order_relaxed);
            TypeParam::ring_doorbell(own);
        }
    });
    for (int i = 1; i <= count; ++i) {
        there.store(i, std::memory_order_relaxed);
        TypeParam::ring_doorbell(set->bell());
        while (back.load(std::memory_order_relaxed) < i) (void)is_rung<TypeParam>(own, deadline::never());
    }
}

// Several threads ring one bell. Each states its reasons by relaxed stores. The sleeper's timeouts and a descriptor
// race with them.
TYPED_TEST(EveryPoller, NoRingIsLostAmongManyRingers) {
    constexpr int ringers = 3;
    const int count = rounds(8'000, 1'500);
    std::array<std::atomic<int>, ringers> given{};
    std::array<std::atomic<int>, ringers> taken{};
    const both_ends pipe = make_pipe();
    const taken_bell<TypeParam> bell;
    thread_group threads;
    threads.start_many(ringers, "ringer", [&](int number) {
        const auto self = static_cast<std::size_t>(number);
        for (int i = 1; i <= count; ++i) {
            given[self].store(i, std::memory_order_relaxed);
            TypeParam::ring_doorbell(bell);
            if (number == 0 && i % 64 == 0) pipe.put();
            if (i % 8 != 0) continue;
            support::until("the ring is heard", [&] { return taken[self].load() == i; });
        }
    });
    support::random_source random(2);
    for (bool all = false; !all;) {
        poll_entry one{pipe.read, readiness::readable};
        // Mostly without a deadline: only a ring ends such a sleep.
        const auto until = random.below(4) == 0 ? deadline(std::chrono::nanoseconds(random.below(50'000)))
                                                : deadline::never();
        const auto result = poll_one<TypeParam>(one, until, bell);
        EXPECT_EQ(result.error, 0);
        if (result.ready != 0) pipe.get();
        all = true;
        for (std::size_t i = 0; i < ringers; ++i) {
            const int seen = given[i].load(std::memory_order_relaxed);
            taken[i].store(seen);
            all = all && seen == count;
        }
    }
    threads.join();
}

#if defined(__linux__)
TEST(LinuxPoller, ASleepIsOneSystemCallAndSoIsARing) {
    const auto calls = support::system_calls_of(linux_poller::after_fork, [] {
        const auto bell = linux_poller::take_doorbell().id;
        for (int i = 0; i < 3; ++i) {
            linux_poller::ring_doorbell(bell);
            linux_poller::ring_doorbell(bell);
            (void)linux_poller::poll({}, bell, deadline::never());
        }
        (void)linux_poller::poll({}, bell, 1ms);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
#if defined(SYS_mmap2)  // on 32-bit systems
    constexpr long map = SYS_mmap2;
#else
    constexpr long map = SYS_mmap;
#endif
    std::size_t made = calls.numbers.size() - calls.count(map);  // ThreadSanitizer maps memory for a new one
    // There is a look at a new descriptor. In a checked build, there is also one before each strike and each sleep.
    const std::size_t looks = calls.looks_at_descriptors();
    EXPECT_LE(looks, TOCSIN_CHECKED != 0 ? 1u + 3 * 2 + 1 : 1u);
    made -= looks;
    EXPECT_LE(made, 1u + 3 * 2 + 1) << testing::PrintToString(calls);
}
#endif

}  // namespace
