// SPDX-License-Identifier: Apache-2.0
// tocsin as its users have it, over the backend that this worker is linked with; and tocsin with a spin policy for
// every wait.
#pragma once

#include "../contestant.hpp"
#include "async_waits.hpp"
#include "channels.hpp"
#include "latch_gate.hpp"
#include "monitor.hpp"
#include "waker_only.hpp"

#include <tocsin/tocsin.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace lab {

// Passes `Policy::spin()` to every wait.
template <class Policy>
struct tocsin_adapter {
    class manual_event {
    public:
        void set() noexcept { event_.set(); }
        void reset() noexcept { event_.reset(); }
        bool is_set() const noexcept { return event_.is_set(); }
        void wait() noexcept { event_.wait(Policy::spin()); }

    private:
        tocsin::manual_reset_event event_;
    };

    class auto_event {
    public:
        void set() noexcept { event_.set(); }
        bool try_wait() noexcept { return event_.try_wait(); }
        void wait() noexcept { event_.wait(Policy::spin()); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            return event_.wait_for(longest, Policy::spin()) == tocsin::wait_status::signaled;
        }

    private:
        tocsin::auto_reset_event event_;
    };

    template <class Word>
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) const { (void)tocsin::wait_on_address(&word_, expected, Policy::spin()); }
        void wake_one() noexcept { (void)tocsin::wake_by_address_one(&word_); }
        void wake_all() noexcept { (void)tocsin::wake_by_address_all(&word_); }
        void add_and_wake_one() noexcept { (void)tocsin::fetch_add(&word_, Word{1}, tocsin::wake_one); }

    private:
        std::atomic<Word> word_{0};
    };

    template <class Word>
    class word_lock {
    public:
        void lock() noexcept { lock_.lock(Policy::spin()); }
        void unlock() noexcept { lock_.unlock(); }

    private:
        tocsin::word_lock<Word> lock_;
    };

    template <class Word>
    class bit_lock {
    public:
        void lock() noexcept { handle().lock(Policy::spin()); }
        void unlock() noexcept { handle().unlock(); }

    private:
        // Made for each use: a handle in the word's cache line would have to be fetched with it.
        tocsin::bit_lock<Word> handle() noexcept { return {word_, 0}; }

        std::atomic<Word> word_{0};
    };
};

template <std::int64_t GatheringNanoseconds>
class tocsin_committer {
public:
    explicit tocsin_committer(std::function<void(std::size_t)> flush)
        : commit_([flush = std::move(flush)](tocsin::commit_group<nothing> group) { flush(group.size()); },
                  {.longest_gathering = std::chrono::nanoseconds(GatheringNanoseconds)}) {}
    void submit() { commit_.submit(nothing{}); }

private:
    struct nothing {};
    tocsin::group_commit<nothing> commit_;
};

// Several auto-reset events, waited for at once.
class tocsin_group {
public:
    explicit tocsin_group(std::size_t count)
        : events_(std::make_unique<tocsin::auto_reset_event[]>(count)),
          sources_(events_.get(), events_.get() + count) {}

    void set(std::size_t which) noexcept { events_[which].set(); }
    std::size_t wait_any() { return tocsin::wait_any(sources_).index; }
    void wait_all() { tocsin::wait_all(sources_); }

private:
    std::unique_ptr<tocsin::auto_reset_event[]> events_;
    std::vector<tocsin::source> sources_;
};

// Set by threads, awaited by coroutines, which the set resumes before it returns.
class tocsin_coroutine_event {
public:
    void set() noexcept { event_.set(); }
    auto coming() noexcept { return tocsin::async_wait(event_); }

private:
    tocsin::auto_reset_event event_;
};

// A gate, on which each coroutine waits together with an event of its own.
class tocsin_coroutine_gate {
public:
    explicit tocsin_coroutine_gate(std::size_t count)
        : own_(std::make_unique<tocsin::auto_reset_event[]>(count)) {}

    void open() noexcept { gate_.set(); }
    void close() noexcept { gate_.reset(); }
    void allow(std::size_t which) noexcept { own_[which].set(); }
    auto coming(std::size_t which) noexcept { return tocsin::async_wait_all(gate_, own_[which]); }

private:
    tocsin::manual_reset_event gate_;
    std::unique_ptr<tocsin::auto_reset_event[]> own_;
};

// An event alongside idle sockets: in a wait_set, or in one wait_any().
class tocsin_set_waker {
public:
    explicit tocsin_set_waker(std::span<const int> idle) {
        set_.add(bell_, 0);
        for (const int each : idle) set_.add(tocsin::readable(each), 1);
    }
    void wake() noexcept { bell_.set(); }
    void wait() {
        tocsin::ready_item found[16];
        set_.wait(found);
    }

private:
    tocsin::auto_reset_event bell_;
    tocsin::wait_set set_;
};

class tocsin_any_waker {
public:
    explicit tocsin_any_waker(std::span<const int> idle) : sources_{bell_} {
        for (const int each : idle) sources_.push_back(tocsin::readable(each));
    }
    void wake() noexcept { bell_.set(); }
    void wait() { tocsin::wait_any(sources_); }

protected:
    tocsin::auto_reset_event bell_;
    std::vector<tocsin::source> sources_;
};

class tocsin_coalesced_waker : tocsin_any_waker {
public:
    using tocsin_any_waker::tocsin_any_waker;
    using tocsin_any_waker::wake;
    void wait() {
        interval_.pause();
        tocsin::wait_any(sources_);
        interval_.start();
    }

private:
    tocsin::coalescer interval_{std::chrono::milliseconds(10)};
};

struct default_spin {
    static constexpr tocsin::spin_policy spin() noexcept { return {}; }
};
struct no_spin {
    static constexpr tocsin::spin_policy spin() noexcept { return tocsin::spin_policy::none(); }
};
struct long_spin {
    static constexpr tocsin::spin_policy spin() noexcept {
        return tocsin::spin_policy::fixed(std::chrono::milliseconds(100));
    }
};

struct tocsin_default : tocsin_adapter<default_spin> {
    static constexpr contestant_info info{
        .name = "tocsin",
        .label = "tocsin",
        .role = role::ours,
        .about = "tocsin over the system's own futex, default settings",
    };
    using committer = tocsin_committer<0>;
    using item_channel = tocsin_item_channel;
    using channel_group = tocsin_channel_group;
    using coroutine_event = tocsin_coroutine_event;
    using coroutine_gate = tocsin_coroutine_gate;
    using async_event = tocsin_operation_event;
    using event_group = tocsin_group;
    using loop_waker = tocsin_set_waker;
};

struct tocsin_wait_any {
    static constexpr waker_only info{
        "tocsin_wait_any", "tocsin wait_any",
        "an event and the sockets in one wait_any(), which registers them at every wait", "", role::variant};
    using loop_waker = tocsin_any_waker;
};

struct tocsin_coalesced {
    static constexpr waker_only info{"tocsin_coalesced", "tocsin coalesced",
                                     "the same, at most one release in 10 ms", "", role::variant};
    using loop_waker = tocsin_coalesced_waker;
};

struct rejected_no_spin : tocsin_adapter<no_spin> {
    static constexpr contestant_info info{
        .name = "rejected_no_spin",
        .label = "(tocsin, no spin)",
        .role = role::rejected,
        .about = "every wait with spin_policy::none(), which is not the default",
        .included_from = tier::full,
    };
};

struct tocsin_latch {
    static constexpr contestant_info info{
        .name = "tocsin_latch",
        .label = "tocsin, latch",
        .role = role::variant,
        .about = "a tocsin::latch of one, made again where an event would be reset",
        .limits = "works once",
        .no_auto_event = "works once",
        .no_lock = "works once",
        .no_address_wait = "waits on itself only",
    };

    using manual_event = latch_gate<tocsin::latch>;
};

// monitor.hpp says what a monitor is.
class tocsin_monitor {
public:
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void sleep() { changed_.wait(mutex_); }
    bool sleep_until(std::int64_t when) {
        return changed_.wait_for(mutex_, std::chrono::nanoseconds(when - now())) ==
               std::cv_status::no_timeout;
    }
    void wake_one() { changed_.notify_one(); }
    void wake_all() { changed_.notify_all(); }

private:
    std::mutex mutex_;
    tocsin::condition changed_;
};

struct tocsin_condition : monitored<tocsin_monitor> {
    static constexpr contestant_info info{
        .name = "tocsin_condition",
        .label = "tocsin, condition",
        .role = role::variant,
        .about = "a flag under a std::mutex, waited for with a tocsin::condition",
        .limits = "re-checks after waking: set then reset may release nobody",
        .no_lock = "its mutex is the contestant std_mutex",
        .no_address_wait = "waits on its own condition only",
    };
};

struct tocsin_long_spin {
    static constexpr contestant_info info{
        .name = "tocsin_long_spin",
        .label = "tocsin, long spin",
        .role = role::variant,
        .about = "every wait with spin_policy::fixed(100 ms): burns a core for latency",
        .no_manual_event = "is measured for the latency of one waiter",
        .no_lock = "is measured for the latency of one waiter",
        .no_address_wait = "is measured for the latency of one waiter",
    };
    static constexpr bool burns_a_core = true;
    using auto_event = tocsin_adapter<long_spin>::auto_event;
};

struct tocsin_gathering {
    static constexpr contestant_info info{
        .name = "tocsin_gathering",
        .label = "tocsin, gathering",
        .role = role::variant,
        .about = "tocsin::group_commit whose groups wait 100 us for more members",
        .no_manual_event = "is only a group commit",
        .no_auto_event = "is only a group commit",
        .no_lock = "is only a group commit",
        .no_address_wait = "is only a group commit",
    };
    using committer = tocsin_committer<100'000>;
};

struct tocsin_handler {
    static constexpr contestant_info info{
        .name = "tocsin_handler",
        .label = "tocsin handler thread",
        .role = role::variant,
        .about = "tocsin::handler_thread: an item is a posted job",
        .no_manual_event = "is a thread that runs jobs",
        .no_auto_event = "is a thread that runs jobs",
        .no_lock = "is a thread that runs jobs",
        .no_address_wait = "is a thread that runs jobs",
    };

    class handler {
    public:
        explicit handler(std::size_t capacity) : thread_({.capacity = capacity, .on_exception = {}}) {}
        template <class Job>
        void post(Job job) {
            thread_.post(job);
        }
        void join() noexcept { thread_.join(); }

    private:
        tocsin::handler_thread thread_;
    };
};

struct tocsin_portable : tocsin_adapter<default_spin> {
    static constexpr contestant_info info{
        .name = "tocsin_portable",
        .label = "tocsin (portable)",
        .role = role::variant,
        .about = "tocsin over a mutex and a condition variable a thread, default settings",
    };
    using committer = tocsin_committer<0>;
    using item_channel = tocsin_item_channel;
    using channel_group = tocsin_channel_group;
    using coroutine_event = tocsin_coroutine_event;
    using coroutine_gate = tocsin_coroutine_gate;
    using async_event = tocsin_operation_event;
};

}  // namespace lab
