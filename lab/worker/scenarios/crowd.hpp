// SPDX-License-Identifier: Apache-2.0
// Many threads that all sleep until one call wakes them, again and again: how long the call holds its thread, and when
// each of them is awake.
#pragma once

#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "../scenario.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace lab {

// A Subject is what they sleep for:
//     arm()             makes it ready to be waited for; called when nobody uses it
//     wait()            a member waits for it
//     fire()            wakes all
//     start, returned   when the waking began, and when the thread that did it was free again; read when all are awake
template <class Subject>
class crowd {
public:
    crowd(context& run, Subject& subject)
        : run_(run),
          subject_(subject),
          woke_at_(run.given.number("threads")),
          threads_(woke_at_.size(), [this](std::size_t index) { live(index); }) {
        if (!threads_.shortage().empty()) run.note(threads_.shortage());
    }

    // Until the budget is spent, but at least three times. The first one only warms up: it touches the stacks, and
    // threads find their cores.
    void wake_again_and_again() {
        threads_.go();
        const std::int64_t end = now() + run_.budget_ns();
        timed_section section(run_, true);
        std::uint32_t repetition = 0;
        do {
            wake_all(section, repetition);
        } while (run_.failures().empty() && (++repetition < 3 || now() < end));
        section.stop(wakes_, harness_cpu_, harness_calls_);
        over_ = true;
        if (!run_.failures().empty()) subject_.fire();  // somebody woke too early: let the others out
        open_gate();
        threads_.join();
    }

private:
    void live(std::size_t index) {
        for (std::uint32_t repetition = 0;; ++repetition) {
            pass_gate(repetition);
            if (over_.load()) return;
            subject_.wait();
            woke_at_[index] = now();
            if (awake_.fetch_add(1) + 1 == threads_.size()) {
                all_awake_.store(repetition + 1);
                futex_wake(all_awake_);
            }
        }
    }

    void pass_gate(std::uint32_t repetition) {
        for (std::uint32_t seen; (seen = gate_.load()) <= repetition;) futex_wait(gate_, seen);
    }
    void open_gate() {
        gate_.fetch_add(1);
        futex_wake(gate_);
    }

    void wake_all(timed_section& section, std::uint32_t repetition) {
        awake_ = 0;
        subject_.arm();
        open_gate();
        if (!wait_until_asleep(threads_.ids())) run_.note("some waiters never slept: they spin");
        if (awake_.load() != 0) {
            run_.fail("nobody wakes before the set");
            return;
        }

        if (repetition != 0) section.resume();
        subject_.fire();
        const std::int64_t own_cpu = thread_cpu();
        while (all_awake_.load() != repetition + 1) {
            futex_wait(all_awake_, repetition);
            ++harness_calls_;
        }
        harness_calls_ += 2 + await_gathering();
        if (repetition == 0) return;
        section.pause();
        // Checking which threads sleep is the harness's work, not the contestant's.
        harness_cpu_ += thread_cpu() - own_cpu;
        wakes_ += threads_.size();
        record();
    }

    void record() {
        const std::int64_t start = subject_.start;
        run_.distribution("held").record_nanoseconds(subject_.returned - start);
        // Fewer than wanted if the system refused more threads.
        const auto members = std::span(woke_at_).first(threads_.size());
        run_.distribution("last").record_nanoseconds(*std::ranges::max_element(members) - start);
        histogram& awake = run_.distribution("awake");
        for (const std::int64_t woke : members)
            awake.record_nanoseconds(std::max<std::int64_t>(woke - start, 0));
    }

    // Returns when all sleep at the gate. Checking that takes thousands of system calls, so a run that counts system
    // calls only waits long enough. Returns how many it made.
    std::uint64_t await_gathering() {
        if (!run_.counting()) {
            wait_until_asleep(threads_.ids());
            return 0;
        }
        sleep_until(now() + 20'000'000 + static_cast<std::int64_t>(threads_.size()) * 50'000);
        return 1;
    }

    context& run_;
    Subject& subject_;
    alignas(128) futex_word gate_{0};
    alignas(128) std::atomic<std::size_t> awake_{0};
    futex_word all_awake_{0};
    std::atomic<bool> over_{false};
    std::uint64_t wakes_ = 0;
    std::int64_t harness_cpu_ = 0;
    std::uint64_t harness_calls_ = 0;
    std::vector<std::int64_t> woke_at_;
    thread_group threads_;
};

}  // namespace lab
