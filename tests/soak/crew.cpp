// SPDX-License-Identifier: Apache-2.0
#include "crew.hpp"

#include "facts.hpp"

#include <tocsin/diagnose.hpp>

#include <cstdio>
#include <cstdlib>

namespace soak {
namespace {

constexpr unsigned looks_a_second = 10;
thread_local worker* this_worker = nullptr;
unsigned last_number = 0;  // of the main thread

bool is_stuck(unsigned looks) {
    return looks > looks_a_second * static_cast<unsigned>(support::patience().count());
}

}  // namespace

worker* worker::current() noexcept { return this_worker; }

crew::~crew() {
    for (auto& each : workers_) each->thread_.join();
}

void crew::start(book& counted, std::string name, std::function<void(worker&)> body, target which) {
    const std::lock_guard lock(mutex_);  // other threads may already look for targets
    workers_.emplace_back(new worker(*this, ++last_number, counted, std::move(name), which));
    worker& self = *workers_.back();
    counted.open(self.counts);
    ++threads_started();
    self.thread_ = std::thread([this, &self, body = std::move(body)] { run(self, body); });
}

void crew::run(worker& self, const std::function<void(worker&)>& body) {
    this_worker = &self;
    support::prepare_for_signals();
    self.id_.store(support::thread_id());
    {
        const std::lock_guard lock(mutex_);
        self.present_ = true;
    }
    body(self);
    {
        const std::lock_guard lock(mutex_);
        self.present_ = false;
    }
    // Waits, so that a pending signal's handler still finds this worker, and a change of priority still finds this
    // thread.
    while (self.held.load() || self.signals_handled.load() != self.signals_sent.load()) {
        std::this_thread::yield();
    }
    this_worker = nullptr;
    self.book_.close(self.counts);
    self.finished_.store(true);
}

bool crew::have_finished() const {
    for (const auto& each : workers_) {
        if (!each->finished_.load()) return false;
    }
    return true;
}

bool crew::targets_have_ended() const {
    const std::lock_guard lock(mutex_);
    for (const auto& each : workers_) {
        if (each->target_ == target::yes && !each->finished_.load()) return false;
    }
    return true;
}

void crew::look_after() {
    for (auto& each : workers_) {
        // Counts looks instead of time, so that a program that was stopped and continued doesn't count as hung.
        const std::uint64_t now = each->finished_.load() ? ~std::uint64_t{0} : each->counts.operations();
        each->looks_ = now == each->seen_ && !each->finished_.load() ? each->looks_ + 1 : 0;
        each->seen_ = now;
        if (is_stuck(each->looks_)) report_hang();
    }
}

void crew::report_hang() const {
    std::fflush(stdout);
    for (const auto& each : workers_) {
        if (each->finished_.load() || each->looks_ <= looks_a_second) continue;
        const pid_t id = each->id_.load();
        std::fprintf(stderr, "HANG: \"%s\" of %s (thread %d, state %c) has made no progress for %u s\n",
                     each->name_.c_str(), each->book_.name().c_str(), static_cast<int>(id),
                     support::state_of(id), each->looks_ / looks_a_second);
    }
    std::fprintf(stderr, "Which thread waits on what:\n%s", tocsin::describe_parked_waits().c_str());
    std::fflush(stderr);
    std::abort();
}

void crew::with_one(support::random_source& random, const action& act) {
    const std::lock_guard lock(mutex_);
    worker& drawn = *workers_[random.below(workers_.size())];
    if (drawn.present_ && drawn.target_ == target::yes) {
        act(drawn, drawn.thread_.native_handle(), drawn.id_.load());
    }
}

void crew::with_all(const action& act) {
    const std::lock_guard lock(mutex_);
    for (auto& each : workers_) {
        if (each->present_ && each->target_ == target::yes) {
            act(*each, each->thread_.native_handle(), each->id_.load());
        }
    }
}

std::atomic<std::uint64_t>& crew::threads_started() {
    static std::atomic<std::uint64_t> count{0};
    return count;
}

}  // namespace soak
