// SPDX-License-Identifier: Apache-2.0
// A process is killed after the first, the second, the third ... instruction of each call on a shared object. After
// each kill, survivors count the tokens, and every call of theirs returns.
//
// The child is traced and makes one instruction at a time. What comes before the call in the child, and what comes
// after it, is stepped through as well. If the call has so many instructions that all kills would take longer than a
// second or so, only every n-th is made, with another first one in each run of the test. TOCSIN_EVERY_INSTRUCTION=1 in
// the environment makes all of them.
#include "sanitizer.hpp"
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sys/ptrace.h>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using tocsin::lock_status;
using tocsin::wait_status;

constexpr auto patience = 30s;  // no call of a survivor takes as long

// One killing. The object is new for each.
struct trial {
    std::function<void()> call;                 // in the child
    std::function<void()> at_step = [] {};      // in the parent, after each of the child's instructions
    std::function<void(bool completed)> check;  // in the parent, after the kill
};

enum class ran { completed, killed, no_tracing };

// Lets the child make `steps` instructions, and kills it.
ran kill_after(long steps, const trial& one, std::atomic<std::uint32_t>& done, long& made) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
        ::raise(SIGSTOP);
        one.call();
        done.store(1);
        for (;;) ::pause();
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return ran::no_tracing;
    for (made = 0; made != steps && done.load(std::memory_order_relaxed) == 0; ++made) {
        if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 ||
            ::waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status))
            return ran::no_tracing;
        one.at_step();
    }
    ::kill(child, SIGKILL);
    while (::waitpid(child, &status, __WALL) == child && !WIFSIGNALED(status)) {
    }
    return done.load() != 0 ? ran::completed : ran::killed;
}

template <class Object>
void kill_after_each_instruction(const std::function<trial(placed<Object>&)>& make) {
    if (support::thread_sanitizer || support::address_sanitizer)
        GTEST_SKIP() << "a sanitizer's own instructions are too many";
    constexpr long affordable =
        12'000;  // instructions in all; each takes up to 70 us where the machine is busy
    const char* const all = std::getenv("TOCSIN_EVERY_INSTRUCTION");
    long length = 0, kills = 0, made = 0;
    {
        placed<Object> object;
        const trial whole = make(object);
        const ran how = kill_after(-1, whole, object.flag(0), length);
        if (how == ran::no_tracing) GTEST_SKIP() << "no tracing here (an emulator, or a sandbox)";
        whole.check(true);
        if (testing::Test::HasFailure()) return;
    }
    const long stride = all != nullptr && all[0] == '1' ? 1 : std::max(1L, length * length / 2 / affordable);
    // A kill is made after more instructions than the call took the first time, if a later call takes longer.
    for (long steps = 1 + ::getpid() % stride;; steps += stride) {
        placed<Object> object;
        const trial one = make(object);
        const ran how = kill_after(steps, one, object.flag(0), made);
        ++kills;
        one.check(how == ran::completed);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "killed after " << steps << " instructions of about " << length;
            return;
        }
        if (how == ran::completed) break;
    }
    std::printf("%ld kills, after every %ld of %ld instructions\n", kills, stride, length);
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
    // Whether the call returned what it should.
    bool join() {
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
                             if (*next != nullptr || object.slots_in(1) == 0) return;
                             *next = acquires(object);
                             EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 2; }));
                             object->release();
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

// The permit comes while the call is giving up.
TEST(SharedDeath, InAcquireThatTimesOutWhenThePermitComes) {
    kill_after_each_instruction<tocsin::shared_semaphore>([](permits& object) {
        const auto released = std::make_shared<int>(0);
        return trial{.call = [&] { object.flag(1) = object->try_acquire_for(1us) ? 1 : 2; },
                     .at_step =
                         [&object, released] {
                             if (*released > 400 || object.slots_in(1) == 0) return;
                             if (++*released == 400) object->release();
                         },
                     .check =
                         [&object, released](bool completed) {
                             if (*released < 400) object->release();
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
                             if (*left || object.slots_in(1) == 0) return;
                             *left = true;
                             leave_permit_of_dead(object, 7);
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
                    if (*is_set) return;
                    if ((reinterpret_cast<std::atomic<std::uint32_t>*>(object.bytes() + 4)->load() & 2) == 0)
                        return;
                    *is_set = true;
                    object->set();
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

TEST(SharedDeath, InUnlockToASleeper) {
    kill_after_each_instruction<tocsin::shared_lock>([](lock_in_memory& object) {
        const auto next = std::make_shared<std::shared_ptr<survivor>>();
        return trial{.call =
                         [&] {
                             (void)object->lock();
                             object.flag(1) = 1;
                             object->unlock();
                         },
                     .at_step =
                         [&object, next] {
                             if (*next != nullptr || object.flag(1) == 0) return;
                             *next =
                                 std::make_shared<survivor>([&object] { return take_and_repair(*object); });
                             EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 1; }));
                         },
                     .check =
                         [&object, next](bool) {
                             if (*next != nullptr) {
                                 EXPECT_TRUE((*next)->join());
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
                             if (*next != nullptr || object.slots_in(1) == 0) return;
                             *next =
                                 std::make_shared<survivor>([&object] { return take_and_repair(*object); });
                             EXPECT_TRUE(comes_true([&] { return object.slots_in(1) == 2; }));
                             object->unlock();
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
