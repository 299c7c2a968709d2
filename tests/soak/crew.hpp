// SPDX-License-Identifier: Apache-2.0
// The threads of one act, and the watchdog over them.
#pragma once

#include "book.hpp"
#include "random.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/types.h>

namespace soak {

class crew;

// Whether a thread may be disturbed: bombarded with signals, moved between processors, given another priority.
enum class target : bool { no, yes };

// A thread, as seen by the code that it runs.
class worker {
public:
    // Call after each step of the work: a worker that takes no step for long counts as hung.
    void done(std::uint64_t operations = 1) { counts.operation(operations); }

    // Whether the act is over, so that no new round must begin.
    bool is_over() const;

    // Makes a call that may block, and records how long it took.
    template <class Call>
    auto timed(Call call) {
        const auto begin = std::chrono::steady_clock::now();
        auto result = call();
        counts.waited(std::chrono::steady_clock::now() - begin);
        return result;
    }

    const unsigned number;  // of this thread, starting at 1
    ledger counts;
    support::random_source random;

    // For the threads that disturb.
    std::atomic<std::uint64_t> signals_sent{0};     // under the crew's lock
    std::atomic<std::uint64_t> signals_handled{0};  // by the handler
    std::atomic<bool> held{false};                  // must not end yet: its priority is being changed

    // The calling thread's worker, or null. Safe in a signal handler.
    static worker* current() noexcept;

private:
    friend class crew;
    worker(const crew& its, unsigned its_number, book& counted, std::string its_name, target its_target)
        : number(its_number),
          random(its_number),
          crew_(its),
          book_(counted),
          name_(std::move(its_name)),
          target_(its_target) {}

    const crew& crew_;
    book& book_;
    const std::string name_;
    const target target_;
    std::atomic<pid_t> id_{0};
    std::atomic<bool> finished_{false};
    bool present_ = false;  // under the crew's lock: it runs and has not begun to end
    std::uint64_t seen_ = 0;
    unsigned looks_ = 0;
    std::thread thread_;
};

class crew {
public:
    crew() = default;
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew();

    void start(book& counted, std::string name, std::function<void(worker&)> body, target = target::yes);

    void end() { over_.store(true); }
    bool is_over() const { return over_.load(std::memory_order_relaxed); }

    bool have_finished() const;
    bool targets_have_ended() const;
    std::size_t size() const { return workers_.size(); }

    // The watchdog; call it about ten times a second. If a thread has made no progress for long, it names the threads
    // that haven't, prints which thread waits on what, and aborts.
    void look_after();

    // Calls `act(worker, thread, id)` for a target drawn at random, or for all; no target can end during the call.
    using action = std::function<void(worker&, pthread_t, pid_t)>;
    void with_one(support::random_source& random, const action& act);
    void with_all(const action& act);

    // Scenes that start threads of their own also count them here.
    static std::atomic<std::uint64_t>& threads_started();

private:
    void run(worker& self, const std::function<void(worker&)>& body);
    [[noreturn]] void report_hang() const;

    std::atomic<bool> over_{false};
    std::vector<std::unique_ptr<worker>> workers_;
    mutable std::mutex mutex_;
};

inline bool worker::is_over() const { return crew_.is_over(); }

}  // namespace soak
