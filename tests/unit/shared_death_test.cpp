// SPDX-License-Identifier: Apache-2.0
// A process is killed after the first, the second, the third ... instruction of each call on a shared object. After
// each kill, survivors count the tokens, and every call of theirs returns.
//
// The child is traced. In a first run it makes one instruction at a time, and the test notes where each one is. (What
// comes just before the call, and just after it, is in the list, too.) For each killing, a breakpoint takes a new child
// close to the instruction, and single steps take it there. On processors other than x86-64 there are single steps
// only, which are slow: so there, only every n-th instruction is the last, with another first one in each run.
// TOCSIN_EVERY_INSTRUCTION=1 in the environment makes it each one.
#include "sanitizer.hpp"
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using tocsin::lock_status;
using tocsin::wait_status;

constexpr auto patience = 1h;  // so long that a call which nobody wakes hangs

// One killing. The object is new for each.
struct trial {
    std::function<void()> call;                            // in the child
    std::function<bool()> at_step = [] { return false; };  // in the parent: whether it has done something
    std::function<void(bool completed)> check;             // in the parent, after the kill
};

// Where the instructions of a call are, and after which of them the parent does something.
struct path {
    std::vector<std::uintptr_t> places;
    std::vector<std::size_t> deeds;
};

enum class ran { completed, killed, no_tracing };

#if defined(__x86_64__)
constexpr bool has_breakpoints = true;
#else
constexpr bool has_breakpoints = false;
#endif

// A child that waits for its first step.
class traced_child {
public:
    traced_child(const trial& one, std::atomic<std::uint32_t>& done)
        : one_(one), done_(done), child_(::fork()) {
        if (child_ == 0) be_traced();
        traced_ = waits();
    }
    ~traced_child() {
        ::kill(child_, SIGKILL);
        int status = 0;
        while (::waitpid(child_, &status, __WALL) == child_ && !WIFSIGNALED(status)) {
        }
    }
    bool is_traced() const { return traced_; }
    bool is_done() const { return done_.load(std::memory_order_relaxed) != 0; }
    std::size_t made() const { return made_; }

    // Makes one instruction. Returns whether the parent has done something after it.
    bool step() {
        ++made_;
        traced_ = ::ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) == 0 && waits();
        return traced_ && does_its_deed();
    }

    // Makes the instructions up to the parent's deed with this number, which the first child's path had after `steps`.
    // A child's path may be longer or shorter, because it reads a clock once more, say. So single steps begin early.
    void run_to_deed(std::size_t number, std::size_t steps, const path& known) {
        constexpr std::size_t early = 600;
        run_to(steps > early ? steps - early : 0, known);
        while (deeds_ < number && traced_ && !is_done()) (void)step();
        made_ = steps;
    }

    std::uintptr_t place() const {
#if defined(__x86_64__)
        user_regs_struct registers{};
        ::ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
        return registers.rip;
#else
        return 0;
#endif
    }

    // Makes the instructions up to the one with this number, of the path of an earlier child.
    void run_to(std::size_t number, const path& known) {
        if (has_breakpoints && number > made_ + 20) {
            if (made_ + 1 < number) step();
            // The place, among the last 30, that the child passes least often on its way.
            std::size_t best = number;
            std::size_t fewest = known.places.size();
            for (std::size_t i = number; i + 30 > number && i > made_; --i) {
                const auto begin = known.places.begin();
                const auto times = static_cast<std::size_t>(
                    std::count(begin + static_cast<std::ptrdiff_t>(made_) + 1,
                               begin + static_cast<std::ptrdiff_t>(i) + 1, known.places[i]));
                if (times * 4 + (number - i) < fewest) {
                    fewest = times * 4 + (number - i);
                    best = i;
                    times_ = times;
                }
            }
            for (; times_ != 0 && traced_ && !is_done(); --times_) {
                if (place() == known.places[best]) (void)step();
                run_to_place(known.places[best]);
            }
            made_ = best;
        }
        while (made_ < number && traced_ && !is_done()) (void)step();
    }

private:
    // What a child does. A breakpoint is where the first child was, so there must be one copy of these instructions.
    [[gnu::noinline]] void be_traced() const {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
        ::alarm(60);  // a call that hangs is an error
        ::raise(SIGSTOP);
        one_.call();
        done_.store(1);
        for (;;) ::raise(SIGSTOP);
    }
    bool does_its_deed() {
        if (!one_.at_step()) return false;
        ++deeds_;
        return true;
    }
    // Waits until the child stops. A child's path may differ from that of the first run (a clock is read once more,
    // say), so it may fall asleep before the parent has done its deed. Then the parent does it now.
    bool waits() {
        int status = 0;
        for (unsigned looks = 1;; ++looks) {
            const pid_t stopped = ::waitpid(child_, &status, __WALL | WNOHANG);
            if (stopped != 0) return stopped == child_ && WIFSTOPPED(status) && WSTOPSIG(status) != SIGALRM;
            if (looks % 1'000 == 0 && is_asleep(child_)) (void)does_its_deed();
            std::this_thread::yield();
        }
    }
    void run_to_place([[maybe_unused]] std::uintptr_t place) {
#if defined(__x86_64__)
        errno = 0;
        auto* const address = reinterpret_cast<void*>(place);
        const long was = ::ptrace(PTRACE_PEEKTEXT, child_, address, nullptr);
        traced_ = errno == 0 && ::ptrace(PTRACE_POKETEXT, child_, address, (was & ~0xFFL) | 0xCC) == 0 &&
                  ::ptrace(PTRACE_CONT, child_, nullptr, nullptr) == 0 && waits();
        if (!traced_ || is_done()) return;
        ::ptrace(PTRACE_POKETEXT, child_, address, was);
        user_regs_struct registers{};
        ::ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
        registers.rip = place;
        ::ptrace(PTRACE_SETREGS, child_, nullptr, &registers);
#endif
    }

    const trial& one_;
    std::atomic<std::uint32_t>& done_;
    pid_t child_;
    bool traced_ = false;
    std::size_t made_ = 0;
    std::size_t deeds_ = 0;  // of the parent
    std::size_t times_ = 0;
};

// Lets a child make `steps` instructions, and kills it.
ran kill_after(std::size_t steps, const trial& one, std::atomic<std::uint32_t>& done, const path& known) {
    bool traced = false;
    {
        traced_child child(one, done);
        for (std::size_t i = 0; i != known.deeds.size() && known.deeds[i] <= steps; ++i)
            child.run_to_deed(i + 1, known.deeds[i], known);
        if (!child.is_done()) child.run_to(steps, known);
        traced = child.is_traced();
    }
    if (!traced) return ran::no_tracing;
    return done.load() != 0 ? ran::completed : ran::killed;
}

// Whether a process can trace another one here: not in an emulator, nor in a sandbox.
bool can_trace() {
    std::atomic<std::uint32_t> done{0};
    const trial nothing{.call = [] {}, .check = {}};
    traced_child child(nothing, done);
    if (child.is_traced()) (void)child.step();
    return child.is_traced();
}

template <class Object>
void kill_after_each_instruction(const std::function<trial(placed<Object>&)>& make) {
    if (support::thread_sanitizer || support::address_sanitizer)
        GTEST_SKIP() << "a sanitizer's own instructions are too many";
    if (!can_trace()) GTEST_SKIP() << "no tracing here (an emulator, or a sandbox)";
    {
        // The first wait of a thread allocates. The children inherit what this thread has.
        placed<tocsin::shared_semaphore> another;
        (void)another->try_acquire_for(1ns);
    }
    path known;
    {
        placed<Object> object;
        const trial whole = make(object);
        {
            traced_child child(whole, object.flag(0));
            while (child.is_traced() && !child.is_done()) {
                known.places.push_back(child.place());
                if (child.step()) known.deeds.push_back(child.made());
            }
            ASSERT_TRUE(child.is_traced()) << "the call hangs";
        }
        whole.check(true);
        if (testing::Test::HasFailure()) return;
    }
    const std::size_t length = known.places.size();
    const char* const all = std::getenv("TOCSIN_EVERY_INSTRUCTION");
    const bool each = all != nullptr && all[0] == '1';
    // About a second: killings that take about a millisecond, or instructions that take up to 70 us.
    const std::size_t stride = each              ? 1
                               : has_breakpoints ? std::max<std::size_t>(1, length / 500)
                                                 : std::max<std::size_t>(1, length * length / 2 / 12'000);
    long kills = 0;
    for (std::size_t steps = 1 + static_cast<std::size_t>(::getpid()) % stride; steps < length;
         steps += stride) {
        placed<Object> object;
        const trial one = make(object);
        const ran how = kill_after(steps, one, object.flag(0), known);
        ++kills;
        EXPECT_NE(how, ran::no_tracing);
        one.check(how == ran::completed);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "killed after " << steps << " instructions of about " << length;
            return;
        }
    }
    std::printf("%ld kills, after every %zu of %zu instructions\n", kills, stride, length);
    testing::Test::RecordProperty("kills", std::to_string(kills));
}

// Another thread's call, which must return.
class survivor {
public:
    explicit survivor(std::function<bool()> call)
        : thread_([this, made = std::move(call)] {
              good_ = made();
              ended_ = true;
          }) {}
    bool has_ended() const { return ended_; }
    // Whether the call returned what it should. If it does not return, ends the test program.
    bool join() {
        if (!comes_true([this] { return ended_.load(); })) {
            std::fprintf(stderr, "a survivor's call does not return\n");
            std::abort();
        }
        thread_.join();
        return good_;
    }

private:
    std::atomic<bool> ended_{false};
    bool good_ = false;
    std::thread thread_;
};

// Marks slot 0 of a semaphore as a dead thread's, with a permit that it has not received.
void leave_permit_of_dead(placed<tocsin::shared_semaphore>& object, unsigned slot) {
    auto* const bytes = object.bytes();
    reinterpret_cast<std::atomic<std::uint64_t>*>(bytes + 64 + 64 * slot)
        ->store(std::uint64_t{5 << 2 | 2} << 32);
    reinterpret_cast<std::atomic<std::uint32_t>*>(bytes + 64 + 64 * slot + 8)->store(0xC000'0000);
    reinterpret_cast<std::atomic<std::uint64_t>*>(bytes + 8)->fetch_or(std::uint64_t{1} << 32);
}

using permits = placed<tocsin::shared_semaphore>;
using token = placed<tocsin::shared_auto_reset_event>;
using gate = placed<tocsin::shared_manual_reset_event>;
using lock_in_memory = placed<tocsin::shared_lock>;

std::shared_ptr<survivor> acquires(permits& object) {
    return std::make_shared<survivor>([&object] { return object->try_acquire_for(patience); });
}

TEST(SharedDeath, InReleaseWithoutSleepers) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        return trial{.call = [&] { object->release(); },
                     .check =
                         [&](bool completed) {
                             const std::ptrdiff_t count = object->available();
                             EXPECT_TRUE(count == 1 || (count == 0 && !completed)) << count;
                             EXPECT_EQ(object->try_acquire(), count == 1);
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

TEST(SharedDeath, InReleaseToASleeper) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        const auto sleeper = acquires(object);
        EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 1; }));
        return trial{.call = [&] { object->release(); },
                     .check =
                         [&object, sleeper](bool completed) {
                             if (object.slots_in(1) == 1) {
                                 EXPECT_FALSE(completed);
                                 object->release();
                             }
                             EXPECT_TRUE(sleeper->join());
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

TEST(SharedDeath, InAcquireOfWhatIsThere) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        object->release();
        return trial{.call = [&] { object->acquire(); },
                     .check =
                         [&](bool completed) {
                             const std::ptrdiff_t count = object->available();
                             EXPECT_TRUE(count == 0 || (count == 1 && !completed)) << count;
                             EXPECT_EQ(object->try_acquire(), count == 1);
                         }};
    });
}

// The child waits and is handed a permit, behind it sleeps a survivor. If the child dies before it has received the
// permit, the survivor gets it without anybody's help.
TEST(SharedDeath, InAcquireThatWaits) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        const auto next = std::make_shared<std::shared_ptr<survivor>>();
        return trial{.call = [&] { object->acquire(); },
                     .at_step =
                         [&object, next] {
                             if (*next != nullptr || object.slots_in(1) == 0) return false;
                             *next = acquires(object);
                             EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 2; }));
                             object->release();
                             return true;
                         },
                     .check =
                         [&object, next](bool completed) {
                             if (*next == nullptr) {
                                 EXPECT_FALSE(completed);
                                 EXPECT_FALSE(object->try_acquire());
                                 object->release();
                                 EXPECT_TRUE(object->try_acquire());
                                 return;
                             }
                             bool taken_by_child = false;
                             EXPECT_TRUE(comes_true([&] {
                                 taken_by_child = object.slots_in(2) == 0 && object.slots_in(1) == 1;
                                 return taken_by_child || (*next)->has_ended();
                             }));
                             EXPECT_TRUE(taken_by_child || !completed);
                             if (taken_by_child) object->release();
                             EXPECT_TRUE((*next)->join());
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

TEST(SharedDeath, InAcquireThatTimesOut) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        return trial{.call = [&] { (void)object->try_acquire_for(1us); },
                     .check =
                         [&](bool) {
                             EXPECT_FALSE(object->try_acquire());
                             object->release();
                             EXPECT_TRUE(object->try_acquire());
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

// The permit comes when the deadline has passed, before the call has noticed.
TEST(SharedDeath, InAcquireThatTimesOutWhenThePermitComes) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        const auto released = std::make_shared<bool>(false);
        return trial{.call = [&] { object.flag(1) = object->try_acquire_for(1us) ? 1 : 2; },
                     .at_step =
                         [&object, released] {
                             if (*released || object.slots_in(1) == 0) return false;
                             *released = true;
                             object->release();
                             return true;
                         },
                     .check =
                         [&object, released](bool completed) {
                             if (!*released) object->release();
                             const bool left = object->try_acquire();
                             if (completed) {
                                 EXPECT_EQ(left, object.flag(1) == 2);
                             }
                             EXPECT_EQ(object.slots_in(2), 0u);
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

TEST(SharedDeath, InAcquireThatInherits) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        leave_permit_of_dead(object, 0);
        return trial{.call = [&] { object->acquire(); },
                     .check =
                         [&](bool completed) {
                             const bool is_there = object.slots_in(2) == 1;
                             EXPECT_FALSE(is_there && completed);
                             EXPECT_EQ(object->try_acquire(), is_there);
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

// The child waits already when another process dies with a permit.
TEST(SharedDeath, InAcquireThatWaitsAndInherits) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        const auto left = std::make_shared<bool>(false);
        return trial{.call = [&] { object->acquire(); },
                     .at_step =
                         [&object, left] {
                             if (*left || object.slots_in(1) == 0) return false;
                             *left = true;
                             leave_permit_of_dead(object, 7);
                             return true;
                         },
                     .check =
                         [&object, left](bool completed) {
                             const bool is_there = object.slots_in(2) == 1;
                             EXPECT_FALSE(is_there && completed);
                             EXPECT_EQ(object->try_acquire(), is_there);
                             EXPECT_FALSE(object->try_acquire());
                         }};
    });
}

TEST(SharedDeath, InSetOfATokenToASleeper) {
    kill_after_each_instruction<tocsin::shared_auto_reset_event>([](token& object) {
        const auto sleeper = std::make_shared<survivor>(
            [&object] { return object->wait_for(patience) == wait_status::signaled; });
        EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 1; }));
        return trial{.call = [&] { object->set(); },
                     .check =
                         [&object, sleeper](bool completed) {
                             if (object.slots_in(1) == 1) {
                                 EXPECT_FALSE(completed);
                                 object->set();
                             }
                             EXPECT_TRUE(sleeper->join());
                             EXPECT_FALSE(object->try_wait());
                         }};
    });
}

TEST(SharedDeath, InResetOfAToken) {
    kill_after_each_instruction<tocsin::shared_auto_reset_event>([](token& object) {
        object->set();
        return trial{.call = [&] { object->reset(); },
                     .check =
                         [&](bool completed) {
                             const bool is_set = object->is_set();
                             EXPECT_FALSE(is_set && completed);
                             EXPECT_EQ(object->try_wait(), is_set);
                         }};
    });
}

TEST(SharedDeath, InSetOfAGateWithASleeper) {
    kill_after_each_instruction<tocsin::shared_manual_reset_event>([](gate& object) {
        const auto sleeper = std::make_shared<survivor>(
            [&object] { return object->wait_for(patience) == wait_status::signaled; });
        EXPECT_TRUE(comes_true([&] {
            return (reinterpret_cast<std::atomic<std::uint32_t>*>(object.bytes() + 4)->load() & 2) != 0;
        }));
        return trial{.call = [&] { object->set(); },
                     .check =
                         [&object, sleeper](bool completed) {
                             if (!object->is_set()) {
                                 EXPECT_FALSE(completed);
                                 object->set();
                             }
                             EXPECT_TRUE(sleeper->join());
                         }};
    });
}

TEST(SharedDeath, InWaitAndResetOfAGate) {
    kill_after_each_instruction<tocsin::shared_manual_reset_event>([](gate& object) {
        const auto is_set = std::make_shared<bool>(false);
        return trial{
            .call =
                [&] {
                    object->wait();
                    object->reset();
                },
            .at_step =
                [&object, is_set] {
                    if (*is_set) return false;
                    if ((reinterpret_cast<std::atomic<std::uint32_t>*>(object.bytes() + 4)->load() & 2) == 0)
                        return false;
                    *is_set = true;
                    object->set();
                    return true;
                },
            .check =
                [&](bool completed) {
                    if (completed) {
                        EXPECT_FALSE(object->is_set());
                    }
                    object->reset();
                    EXPECT_EQ(object->wait_for(0ms), wait_status::timed_out);
                    object->set();
                    object->wait();
                }};
    });
}

bool holds(lock_status how) { return how == lock_status::acquired || how == lock_status::owner_died; }

// Takes the lock as whoever finds it after a death, and leaves it in order.
bool take_and_repair(tocsin::shared_lock& lock) {
    if (!holds(lock.try_lock_for(patience))) return false;
    lock.mark_repaired();
    lock.unlock();
    return true;
}

TEST(SharedDeath, InLockAndUnlock) {
    kill_after_each_instruction<tocsin::shared_lock>([](lock_in_memory& object) {
        return trial{.call =
                         [&] {
                             (void)object->lock();
                             object.flag(1) = 1;
                             object->unlock();
                         },
                     .check =
                         [&](bool completed) {
                             const lock_status how = object->try_lock();
                             EXPECT_TRUE(holds(how));
                             if (completed) {
                                 EXPECT_EQ(how, lock_status::acquired);
                             }
                             object->mark_repaired();
                             object->unlock();
                             EXPECT_EQ(object->try_lock(), lock_status::acquired);
                             object->unlock();
                         }};
    });
}

// Wakes the thread that sleeps on a slot's word, for no reason. Returns whether one slept there.
bool wakes_sleeper_of(lock_in_memory& object, unsigned slot) {
    return ::syscall(SYS_futex, object.bytes() + 64 + 64 * slot, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 1;
}

// Two survivors sleep. The heir has been woken for no reason and sleeps again. So of the two, it is the later one in
// the kernel's queue of those who watch the holder, and the kernel's wake for the holder's death goes to the other one.
TEST(SharedDeath, InUnlockToASleeper) {
    kill_after_each_instruction<tocsin::shared_lock>([](lock_in_memory& object) {
        const auto next = std::make_shared<std::shared_ptr<survivor>>();
        const auto second = std::make_shared<std::shared_ptr<survivor>>();
        return trial{
            .call =
                [&] {
                    (void)object->lock();
                    object.flag(1) = 1;
                    object->unlock();
                },
            .at_step =
                [&object, next, second] {
                    if (*next != nullptr || object.flag(1) == 0) return false;
                    *next = std::make_shared<survivor>([&object] { return take_and_repair(*object); });
                    EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 1; }));
                    *second = std::make_shared<survivor>([&object] { return take_and_repair(*object); });
                    EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 2; }));
                    const std::uint64_t before = object.word_of(1);
                    EXPECT_TRUE(comes_true([&] { return wakes_sleeper_of(object, 1); }));
                    EXPECT_TRUE(comes_true([&] { return object.word_of(1) != before; }));
                    return true;
                },
            .check =
                [&object, next, second](bool) {
                    if (*next != nullptr) {
                        EXPECT_TRUE((*next)->join());
                        EXPECT_TRUE((*second)->join());
                    }
                    EXPECT_TRUE(take_and_repair(*object));
                    EXPECT_EQ(object->try_lock(), lock_status::acquired);
                    object->unlock();
                }};
    });
}

// The child waits for a lock that the survivor holds and then unlocks, and behind it another survivor waits.
TEST(SharedDeath, InLockThatWaits) {
    kill_after_each_instruction<tocsin::shared_lock>([](lock_in_memory& object) {
        EXPECT_EQ(object->lock(), lock_status::acquired);
        const auto next = std::make_shared<std::shared_ptr<survivor>>();
        return trial{.call = [&] { (void)object->lock(); },
                     .at_step =
                         [&object, next] {
                             if (*next != nullptr || object.slots_in(1) == 0) return false;
                             *next =
                                 std::make_shared<survivor>([&object] { return take_and_repair(*object); });
                             EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 2; }));
                             object->unlock();
                             return true;
                         },
                     .check =
                         [&object, next](bool) {
                             *next != nullptr ? (void)(*next)->join() : object->unlock();
                             EXPECT_TRUE(take_and_repair(*object));
                             EXPECT_EQ(object->try_lock(), lock_status::acquired);
                             object->unlock();
                         }};
    });
}

TEST(SharedDeath, InLockAfterADeath) {
    kill_after_each_instruction<tocsin::shared_lock>([](lock_in_memory& object) {
        EXPECT_EQ(end_of(in_child([&] { (void)object->lock(); })), 0);
        return trial{.call =
                         [&] {
                             (void)object->lock();
                             object.flag(1) = 1;
                             object->mark_repaired();
                             object->unlock();
                         },
                     .check =
                         [&](bool completed) {
                             const lock_status how = object->try_lock();
                             EXPECT_TRUE(holds(how));
                             if (completed) {
                                 EXPECT_EQ(how, lock_status::acquired);
                             }
                             if (object.flag(1) == 0) {
                                 EXPECT_EQ(how, lock_status::owner_died);
                             }
                             object->mark_repaired();
                             object->unlock();
                         }};
    });
}

}  // namespace
