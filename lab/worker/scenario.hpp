// What a scenario is: a struct with
//
//     static const scenario_info& info();
//     template <class C> static std::string refuses(const parameters&);   // empty: can run
//     template <class C> static void check(context&);                     // before anything is timed
//     template <class C> static void run(context&);                       // one sample
//
// and a function that adds it to the registry, crossed with every contestant of this worker.
#pragma once

#include "contestant.hpp"
#include "measure/histogram.hpp"
#include "measure/syscall_counter.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lab {

// A case of a scenario: names and values, in a fixed order.
class parameters {
public:
    parameters() = default;
    parameters(std::initializer_list<std::pair<std::string, std::string>> values) : values_(values) {}

    void add(std::string name, std::string value) { values_.emplace_back(std::move(name), std::move(value)); }
    void add(std::string name, std::uint64_t value) { add(std::move(name), std::to_string(value)); }

    // Of a parameter that the scenario declares. Throws std::out_of_range for another.
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

// One figure of the table: a statistic of a distribution, or a value per operation.
struct column {
    std::string_view metric;     // the name under which the sample has it
    std::string_view statistic;  // median, p99, most, or value
    std::string_view label;
    std::string_view unit;  // ns, bytes, count
    bool judged = false;    // tocsin wins or loses here
};

struct scenario_info {
    std::string_view name;
    std::string_view question;  // in the reader's words
    std::string_view method;    // what is timed, how threads are placed
    std::vector<column> columns;
    std::vector<scenario_case> cases;
    std::string_view floor;  // what the floor of this scenario is
};

// The three that every waiting scenario reports per operation; see timed_section.
inline constexpr column cpu_column{"cpu", "value", "CPU", "ns", true};
inline constexpr column switches_column{"switches", "value", "switches", "count"};
inline constexpr column syscalls_column{"syscalls", "value", "system calls", "count"};

// One run of a scenario with a contestant: what was asked for, and what came out.
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
    // This run counts system calls; its times are thrown away.
    bool counting() const noexcept { return counter_ != nullptr && counter_->is_open(); }
    // Something the reader should know: a thing that wasn't permitted, a size that wasn't reached.
    void note(std::string text);
    // A result that is wrong. The sample is then worthless.
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

// From construction to stop(), except while paused: CPU time of the process, context switches of all its
// threads, and in a counting run their system calls. Reported per operation.
class timed_section {
public:
    explicit timed_section(context& run, bool starts_paused = false);

    void pause();
    void resume();

    // CPU time that the harness itself used meanwhile, and system calls that it made, are not the
    // contestant's.
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

}  // namespace lab
