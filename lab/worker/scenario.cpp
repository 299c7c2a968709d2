// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include "measure/clock.hpp"
#include "measure/machine.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace lab {
namespace {

// For notes and failures: any thread of a scenario may add them; they are rare.
std::mutex& text_lock() {
    static std::mutex lock;
    return lock;
}

void add_once(std::vector<std::string>& texts, std::string text) {
    const std::scoped_lock held(text_lock());
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
}

}  // namespace

const std::string& parameters::text(std::string_view name) const {
    for (const auto& [known, value] : values_) {
        if (known == name) return value;
    }
    throw std::out_of_range("no parameter " + std::string(name));
}

std::uint64_t parameters::number(std::string_view name) const { return std::stoull(text(name)); }

void context::note(std::string text) { add_once(notes_, std::move(text)); }
void context::fail(std::string text) { add_once(failures_, std::move(text)); }

timed_section::timed_section(context& run, bool starts_paused) : run_(run) {
    if (!starts_paused) resume();
}

void timed_section::resume() {
    if (running_) return;
    running_ = true;
    at_resume_.switches = context_switches();
    if (run_.counting()) run_.counter_->start();
    at_resume_.cpu = process_cpu();
}

void timed_section::pause() {
    if (!running_) return;
    running_ = false;
    used_.cpu += process_cpu() - at_resume_.cpu;
    if (run_.counting()) {
        constexpr std::uint64_t own = 2;  // the process's clock is read twice
        const std::uint64_t calls = run_.counter_->stop();
        used_.calls += calls > own ? calls - own : 0;
    }
    used_.switches += context_switches() - at_resume_.switches;
}

void timed_section::stop(std::uint64_t operations, std::int64_t harness_cpu_ns, std::uint64_t harness_calls) {
    pause();
    const double per = 1.0 / static_cast<double>(std::max<std::uint64_t>(operations, 1));
    run_.operations_ = operations;
    run_.value("cpu", static_cast<double>(std::max<std::int64_t>(used_.cpu - harness_cpu_ns, 0)) * per);
    if (counts_switches) run_.value("switches", static_cast<double>(used_.switches) * per);
    if (run_.counting()) {
        const std::uint64_t calls = used_.calls > harness_calls ? used_.calls - harness_calls : 0;
        run_.value("syscalls", static_cast<double>(calls) * per);
    }
}

}  // namespace lab
