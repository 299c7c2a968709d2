// SPDX-License-Identifier: Apache-2.0
// A scenario is a struct with
//
//     static const scenario_info& info();
//     template <class C> static std::string refuses(const parameters&);   // why C can't run this case; empty: it can
//     template <class C> static void check(context&);                     // before anything is timed
//     template <class C> static void run(context&);                       // one sample
//
// and a `registration` (registry.hpp), which crosses it with every contestant of this worker. Most scenarios are
// about one kind of primitive and derive from `scenario_of` below, which leaves them less to write.
#pragma once

#include "contestant.hpp"
#include "measure/histogram.hpp"
#include "measure/syscall_counter.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lab {

// The parameters of a case: names and values, in a fixed order.
class parameters {
public:
    parameters() = default;
    parameters(std::initializer_list<std::pair<std::string, std::string>> values) : values_(values) {}

    void add(std::string name, std::string value) { values_.emplace_back(std::move(name), std::move(value)); }
    void add(std::string name, std::uint64_t value) { add(std::move(name), std::to_string(value)); }

    // The value of a parameter. Throws std::out_of_range if the case has no such parameter.
    const std::string& text(std::string_view name) const;
    std::uint64_t number(std::string_view name) const;

    const std::vector<std::pair<std::string, std::string>>& all() const noexcept { return values_; }
    friend bool operator==(const parameters&, const parameters&) = default;

private:
    std::vector<std::pair<std::string, std::string>> values_;
};

struct scenario_case {
    parameters given;
    lab::tier tier = tier::quick;  // the shortest kind of run that includes it
};

// One column of the table: a statistic of a distribution, or a value per operation.
struct column {
    std::string_view metric;     // its name in the sample
    std::string_view statistic;  // median, p99, most, or value
    std::string_view label;
    std::string_view unit;  // ns, bytes, count
    bool judged = false;    // tocsin wins or loses here
};

struct scenario_info {
    std::string_view name;
    std::string_view question;  // in the reader's words
    std::string_view method;    // what is timed, and how threads are placed
    std::vector<column> columns;
    std::vector<scenario_case> cases;
    std::string_view floor;  // what the floor does here
};

// The three columns of every scenario that waits, per operation; timed_section measures them.
inline constexpr column cpu_column{"cpu", "value", "CPU", "ns", true};
inline constexpr column switches_column{"switches", "value", "switches", "count"};
inline constexpr column syscalls_column{"syscalls", "value", "system calls", "count"};

// One run of a scenario with a contestant: what was asked for, and what was measured.
class context {
public:
    context(parameters its_case, std::uint64_t its_seed, double budget_seconds, syscall_counter* counter)
        : given(std::move(its_case)),
          seed(its_seed),
          counter_(counter),
          budget_ns_(static_cast<std::int64_t>(budget_seconds * 1e9)) {}

    const parameters given;
    const std::uint64_t seed;

    std::int64_t budget_ns() const noexcept { return budget_ns_; }

    histogram& distribution(const std::string& name) { return distributions_[name]; }
    void value(const std::string& name, double value) { values_[name] = value; }
    // Whether this run counts system calls; its times are then thrown away.
    bool counting() const noexcept { return counter_ != nullptr && counter_->is_open(); }
    // Something the reader should know, such as what wasn't permitted, or a size that wasn't reached.
    void note(std::string text);
    // Something that is wrong. It makes the sample worthless.
    void fail(std::string text);
    bool require(bool condition, const char* what) {
        if (!condition) fail(what);
        return condition;
    }

    const std::map<std::string, histogram>& distributions() const noexcept { return distributions_; }
    const std::map<std::string, double>& values() const noexcept { return values_; }
    const std::vector<std::string>& notes() const noexcept { return notes_; }
    const std::vector<std::string>& failures() const noexcept { return failures_; }
    std::uint64_t operations() const noexcept { return operations_; }

private:
    friend class timed_section;

    syscall_counter* counter_;
    std::int64_t budget_ns_;
    std::map<std::string, histogram> distributions_;
    std::map<std::string, double> values_;
    std::vector<std::string> notes_;
    std::vector<std::string> failures_;
    std::uint64_t operations_ = 0;
};

// Measures, from construction to stop() and except while paused, the CPU time of the process, the context switches of
// all its threads, and in a counting run their system calls. Reports them per operation.
class timed_section {
public:
    explicit timed_section(context& run, bool starts_paused = false);

    void pause();
    void resume();

    // Subtracts the CPU time and the system calls of the harness itself.
    void stop(std::uint64_t operations, std::int64_t harness_cpu_ns = 0, std::uint64_t harness_calls = 0);

private:
    struct usage {
        std::int64_t cpu = 0;
        std::uint64_t switches = 0;
        std::uint64_t calls = 0;
    };

    context& run_;
    bool running_ = false;
    usage at_resume_;
    usage used_;
};

// The base of a scenario about one kind of primitive. A Kind says which primitive P of that kind a contestant C has:
//
//     template <class C, class F> static void with(const parameters&, F f);   // f(std::type_identity<P>) if it has one
//     template <class C> static std::string refuses(const parameters&);       // why it has none; empty: it has one
//     template <class P> static void check(context&);                         // whether P does what it must
//
// The Scenario adds what it measures:
//
//     static const scenario_info& info();
//     template <class P> static void run_with(context&);                      // one sample
//     static void run_floor(context&);                                        // one sample of the floor
//
// Instead of run_floor() it may define `no_floor`, the reason why there is none. If contestants can't take part for
// further reasons, it defines refuses_contestant() or refuses_type(), which return them.
template <class Scenario, class Kind>
struct scenario_of {
    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>) {
            if (!Scenario::no_floor.empty()) return std::string(Scenario::no_floor);
            return Scenario::template refuses_contestant<C>(given);
        } else {
            std::string why = Scenario::template refuses_contestant<C>(given);
            if (!why.empty()) return why;
            Kind::template with<C>(given, [&]<class P>(std::type_identity<P>) {
                why = Scenario::template refuses_type<P>(given);
            });
            return why.empty() ? Kind::template refuses<C>(given) : why;
        }
    }

    template <class C>
    static void check(context& run) {
        Kind::template with<C>(run.given,
                               [&]<class P>(std::type_identity<P>) { Kind::template check<P>(run); });
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            if constexpr (Scenario::no_floor.empty()) Scenario::run_floor(run);
        } else {
            Kind::template with<C>(
                run.given, [&]<class P>(std::type_identity<P>) { Scenario::template run_with<P>(run); });
        }
    }

    // Defaults, which a Scenario may hide: it has a floor, and only its Kind refuses.
    static constexpr std::string_view no_floor{};
    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return {};
    }
    template <class P>
    static std::string refuses_type(const parameters&) {
        return {};
    }
};

}  // namespace lab
