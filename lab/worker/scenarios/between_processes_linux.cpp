// SPDX-License-Identifier: Apache-2.0
// What processes do with events that they share (contestants/between.hpp).
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/futex.hpp"
#include "../measure/machine.hpp"

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace lab {
namespace {

// One thing in memory that is shared with the children.
template <class T>
class shared {
public:
    shared()
        : at_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          it_(at_ == MAP_FAILED ? throw std::bad_alloc() : new (at_) T()) {}
    ~shared() {
        it_->~T();
        munmap(at_, sizeof(T));
    }
    shared(const shared&) = delete;
    shared& operator=(const shared&) = delete;
    T* operator->() const noexcept { return it_; }

private:
    void* at_;
    T* it_;
};

// Runs a function in another process, or in another thread of this one.
class partner {
public:
    partner(bool in_thread, const std::function<void()>& body) {
        if (in_thread) {
            std::atomic<pid_t> started{0};
            thread_ = std::thread([&started, body] {
                started = thread_id();
                started.notify_one();
                body();
            });
            started.wait(0);
            id_ = started;
            return;
        }
        const pid_t parent = getpid();
        id_ = fork();
        if (id_ != 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) body();
        _exit(0);
    }
    partner(partner&& other) noexcept : id_(std::exchange(other.id_, 0)), thread_(std::move(other.thread_)) {}
    partner& operator=(partner&&) = delete;
    ~partner() { join(); }

    bool exists() const noexcept { return id_ > 0; }
    void kill_it() const noexcept { kill(id_, SIGKILL); }
    void join() noexcept {
        if (thread_.joinable())
            thread_.join();
        else if (id_ > 0)
            waitpid(id_, nullptr, 0);
        id_ = 0;
    }
    // Waits until it sleeps in the kernel.
    void wait_until_asleep() const noexcept {
        char path[40];
        std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(id_));
        for (;;) {
            char text[256] = {};
            const int file = open(path, O_RDONLY | O_CLOEXEC);
            const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
            if (file >= 0) close(file);
            const std::string_view line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
            const std::size_t name_end = line.rfind(')');
            if (name_end == std::string_view::npos || line.substr(name_end).starts_with(") S")) return;
            std::this_thread::yield();
        }
    }

private:
    pid_t id_ = 0;
    std::thread thread_;
};

struct between_kind {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (requires { typename C::between; }) f(std::type_identity<typename C::between>{});
    }
    template <class C>
    static std::string refuses(const parameters&) {
        if constexpr (requires { C::missing_here(); }) {
            if (std::string why = C::missing_here(); !why.empty()) return why;
        }
        if constexpr (requires { typename C::between; })
            return {};
        else
            return "is measured within a process";
    }
    template <class P>
    static void check(context& run) {
        shared<typename P::event> event;
        run.require(!event->try_wait(), "a new event is not set");
        event->set();
        run.require(event->try_wait(), "a set event can be taken");
        run.require(!event->try_wait(), "and once only");
    }
};

struct between_processes : scenario_of<between_processes, between_kind> {
    static constexpr std::string_view no_floor =
        "each work has another one, which the scenarios of one process have";

    static const scenario_info& info() {
        static const scenario_info about{
            .name = "between_processes",
            .question = "What do events cost that processes share?",
            .method =
                "set_take, look: one process pinned to a core, in batches. ping_pong: two processes wake "
                "each "
                "other, a round trip in batches of 8. any_of_8: the same, but the partner waits for 8 events "
                "at "
                "once. chain: through ten processes, a hop. broadcast: from set() until the last of n "
                "sleeping "
                "processes has counted itself. after_kill: from the kill of a lock's holder until a process "
                "that "
                "sleeps for the lock has it",
            .columns = {{"time", "median", "time", "ns", true}, {"time", "p99", "p99", "ns"}},
            .cases = {{{{"work", "set_take"}}, tier::quick},
                      {{{"work", "look"}}, tier::quick},
                      {{{"work", "ping_pong_2_cores"}}, tier::quick},
                      {{{"work", "ping_pong_1_core"}}, tier::quick},
                      {{{"work", "broadcast_2"}}, tier::standard},
                      {{{"work", "broadcast_10"}}, tier::quick},
                      {{{"work", "broadcast_100"}}, tier::standard},
                      {{{"work", "any_of_8"}}, tier::quick},
                      {{{"work", "chain"}}, tier::standard},
                      {{{"work", "after_kill"}}, tier::quick}},
            .floor = "none",
        };
        return about;
    }

    template <class P>
    static constexpr bool in_threads = requires { P::in_threads; };

    template <class P>
    static std::string refuses_type(const parameters& given) {
        const std::string& work = given.text("work");
        if (work == "ping_pong_2_cores" && usable_cores().size() < 2) return "needs two cores";
        if (work == "any_of_8" && !requires(typename P::event* all) { P::wait_any(all, 8); })
            return "can't wait for several";
        if (work.starts_with("broadcast") && !requires { typename P::gate; })
            return "lets one through for each set";
        if (work == "after_kill" && !requires { typename P::lock; })
            return "has no lock that survives its holder";
        return {};
    }

    template <class P>
    static void run_with(context& run) {
        const std::string& work = run.given.text("work");
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        if (work == "set_take" || work == "look") {
            alone<P>(run, work == "look");
        } else if (work == "ping_pong_2_cores" || work == "ping_pong_1_core") {
            round_trips<P, 1>(run, work == "ping_pong_2_cores" ? 1 : 0);
        } else if (work == "chain") {
            chain<P>(run);
        } else if (work == "any_of_8") {
            if constexpr (requires(typename P::event* all) { P::wait_any(all, 8); })
                round_trips<P, 8>(run, 1);
        } else if (work == "after_kill") {
            if constexpr (requires { typename P::lock; }) after_kill<P>(run);
        } else if constexpr (requires { typename P::gate; }) {
            broadcast<P>(run, std::stoul(work.substr(work.find('_') + 1)));
        }
    }

    template <class P>
    static void alone(context& run, bool looks) {
        using event = typename P::event;
        shared<event> memory;
        event& subject = *memory.operator->();
        if (looks) {
            time_batches(run, "time", subject, [](event& one) {
                if (one.try_wait()) [[unlikely]]
                    stay_a_branch();
            });
        } else {
            time_batches(run, "time", subject, [](event& one) {
                one.set();
                one.wait();
            });
        }
        run.require(!subject.try_wait(), "as many takes as sets leave the event unset");
    }

    // Repeats `once`, which takes `size` steps, until the budget is spent, and records each.
    template <class Once>
    static void repeat_timed(context& run, std::uint64_t size, Once once) {
        const std::int64_t warm = now() + run.budget_ns() / 10;
        do {
            once();
        } while (now() < warm);
        histogram& times = run.distribution("time");
        std::uint64_t steps = 0;
        timed_section section(run);
        const std::int64_t end = now() + run.budget_ns();
        do {
            const std::int64_t start = now();
            once();
            times.record_batch(now() - start, size);
            steps += size;
        } while (now() < end);
        section.stop(steps);
    }

    template <class P, std::size_t Events>
    static void round_trips(context& run, std::size_t core) {
        struct board {
            alignas(128) typename P::event there[Events];
            alignas(128) typename P::event back;
            std::atomic<bool> over{false};
        };
        shared<board> all;
        partner other(in_threads<P>, [&] {
            pin_to_nth(core);
            for (;;) {
                if constexpr (Events == 1)
                    all->there[0].wait();
                else
                    (void)P::wait_any(all->there, Events);
                if (all->over.load(std::memory_order_relaxed)) return;
                all->back.set();
            }
        });
        if (!run.require(other.exists(), "a process can be started")) return;
        std::size_t next = 0;
        constexpr std::uint64_t batch = 8;
        repeat_timed(run, batch, [&] {
            for (std::uint64_t i = 0; i != batch; ++i) {
                all->there[next++ % Events].set();
                all->back.wait();
            }
        });
        all->over = true;
        all->there[0].set();
        other.join();
        run.require(!all->back.try_wait(), "each trip is answered once");
    }

    template <class P>
    static void chain(context& run) {
        constexpr std::size_t links = 10;
        struct board {
            struct alignas(128) padded {
                typename P::event it;
            };
            padded events[links + 1];
            std::atomic<bool> over{false};
        };
        shared<board> all;
        std::vector<partner> others;
        for (std::size_t i = 0; i != links; ++i) {
            others.emplace_back(in_threads<P>, [&all, i] {
                pin_to_nth(i);
                for (;;) {
                    all->events[i].it.wait();
                    const bool over = all->over.load(std::memory_order_relaxed);
                    all->events[i + 1].it.set();
                    if (over) return;
                }
            });
            if (!run.require(others.back().exists(), "a process can be started")) return;
        }
        const auto once = [&] {
            all->events[0].it.set();
            all->events[links].it.wait();
        };
        repeat_timed(run, links, once);
        all->over = true;
        once();
    }

    template <class P>
    static void broadcast(context& run, std::size_t count) {
        struct board {
            alignas(128) typename P::gate gates[2];
            alignas(128) futex_word passed{0};
            std::atomic<bool> over{false};
        };
        shared<board> all;
        std::vector<partner> others;
        for (std::size_t i = 0; i != count; ++i) {
            others.emplace_back(in_threads<P>, [&all, i, count] {
                pin_to_nth(i);
                for (std::size_t round = 0;; ++round) {
                    all->gates[round % 2].wait();
                    const bool over = all->over.load(std::memory_order_relaxed);
                    if (all->passed.fetch_add(1) + 1 == count)
                        syscall(SYS_futex, &all->passed, FUTEX_WAKE, 1, nullptr, nullptr, 0);
                    if (over) return;
                }
            });
            if (!run.require(others.back().exists(), "a process can be started")) return;
        }
        histogram& times = run.distribution("time");
        std::uint64_t rounds = 0;
        const auto once = [&] {
            for (const partner& each : others) each.wait_until_asleep();
            all->passed = 0;
            const std::int64_t start = now();
            all->gates[rounds % 2].set();
            for (std::uint32_t seen = all->passed; seen != count; seen = all->passed)
                syscall(SYS_futex, &all->passed, FUTEX_WAIT, seen, nullptr, nullptr, 0);
            const std::int64_t end = now();
            all->gates[rounds++ % 2].reset();
            return end - start;
        };
        (void)once();
        timed_section section(run);
        const std::int64_t end = now() + run.budget_ns();
        do {
            times.record_batch(once(), 1);
        } while (now() < end);
        section.stop(rounds - 1);
        all->over = true;
        (void)once();
    }

    template <class P>
    static void after_kill(context& run) {
        struct board {
            alignas(128) typename P::lock lock;
            std::atomic<bool> held{false};
            std::atomic<std::int64_t> acquired{0};
        };
        histogram& times = run.distribution("time");
        std::uint64_t kills = 0;
        timed_section section(run);
        const std::int64_t end = now() + run.budget_ns();
        do {
            shared<board> all;
            partner holder(false, [&] {
                all->lock.acquire();
                all->held = true;
                for (;;) pause();
            });
            while (holder.exists() && !all->held) std::this_thread::yield();
            partner heir(false, [&] {
                all->lock.acquire();
                all->acquired = now();
                all->lock.unlock();
            });
            if (!run.require(holder.exists() && heir.exists(), "a process can be started")) break;
            heir.wait_until_asleep();
            const std::int64_t start = now();
            holder.kill_it();
            heir.join();
            times.record_batch(all->acquired - start, 1);
            ++kills;
        } while (now() < end);
        section.stop(kills);
    }
};

const registration<between_processes> registered{lineup{}};

}  // namespace

}  // namespace lab
