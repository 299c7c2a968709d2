// SPDX-License-Identifier: Apache-2.0
// A worker of the laboratory: runs one scenario with one contestant and prints one line of JSON.
//
//     tocsin_lab_worker --list
//     tocsin_lab_worker --check SCENARIO CONTESTANT [PARAMETER=VALUE ...]
//     tocsin_lab_worker --run SCENARIO CONTESTANT [PARAMETER=VALUE ...]
//                       [--seed N] [--budget-ms MS] [--watchdog-s S] [--count-syscalls]
//
// Exit code: 0 done, 1 the result is wrong, 2 the command line is wrong. A parameter that is left out has its value in
// the scenario's first case.
#include "measure/machine.hpp"
#include "protocol.hpp"
#include "registry.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lab {
namespace {

struct bad_command_line {
    std::string message;
};

struct command {
    enum class mode { list, check, run };
    lab::command::mode mode = mode::list;
    std::vector<std::string_view> words;
    std::uint64_t seed = 1;
    double budget_ms = 100;
    unsigned watchdog_s = 120;
    bool count_syscalls = false;
};

// Not from_chars, which libc++ 19 has for integers only.
template <class Number>
Number number_from(std::string_view flag, const char* text) {
    std::istringstream words(text != nullptr ? text : "");
    Number number{};
    if (words >> number && words.eof() && words.str().front() != '-') return number;
    throw bad_command_line{std::string(flag) + " needs a number"};
}

command parse(int count, char** texts) {
    command parsed;
    bool has_mode = false;
    const auto set_mode = [&](enum command::mode mode) {
        parsed.mode = mode;
        has_mode = true;
    };
    for (int i = 1; i < count; ++i) {
        const std::string_view word = texts[i];
        const auto next = [&]() -> const char* { return i + 1 < count ? texts[++i] : nullptr; };
        if (word == "--list")
            set_mode(command::mode::list);
        else if (word == "--check")
            set_mode(command::mode::check);
        else if (word == "--run")
            set_mode(command::mode::run);
        else if (word == "--seed")
            parsed.seed = number_from<std::uint64_t>(word, next());
        else if (word == "--budget-ms")
            parsed.budget_ms = number_from<double>(word, next());
        else if (word == "--watchdog-s")
            parsed.watchdog_s = number_from<unsigned>(word, next());
        else if (word == "--count-syscalls")
            parsed.count_syscalls = true;
        else if (word.starts_with("--"))
            throw bad_command_line{"unknown option " + std::string(word)};
        else
            parsed.words.push_back(word);
    }
    if (!has_mode) throw bad_command_line{"one of --list, --check, --run is needed"};
    if (parsed.mode != command::mode::list && parsed.words.size() < 2) {
        throw bad_command_line{"a scenario and a contestant are needed"};
    }
    return parsed;
}

template <class Items, class Name>
[[noreturn]] void unknown(std::string_view what, std::string_view given, const Items& items, Name name) {
    std::string message = "unknown " + std::string(what) + " " + std::string(given) + "; valid:";
    for (const auto& item : items) message += " " + std::string(name(item));
    throw bad_command_line{message};
}

const registered_scenario& find_scenario(const registry& all, std::string_view name) {
    const auto name_of_scenario = [](const registered_scenario& one) { return one.info->name; };
    const auto found = std::ranges::find(all.scenarios(), name, name_of_scenario);
    if (found == all.scenarios().end()) unknown("scenario", name, all.scenarios(), name_of_scenario);
    return *found;
}

const pairing& find_pairing(const registered_scenario& scenario, std::string_view name) {
    const auto name_of_contestant = [](const pairing& one) { return one.contestant->name; };
    const auto found = std::ranges::find(scenario.pairings, name, name_of_contestant);
    if (found == scenario.pairings.end()) unknown("contestant", name, scenario.pairings, name_of_contestant);
    return *found;
}

// Of all cases, each once. Some have parameters that the first one lacks.
std::vector<std::string> parameter_names(const scenario_info& scenario) {
    std::vector<std::string> names;
    for (const scenario_case& each : scenario.cases) {
        for (const auto& [name, value] : each.given.all()) {
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

// The case that the words describe. What they don't name is as in the first case.
parameters fill_in(const scenario_info& scenario, const std::vector<std::string_view>& words) {
    const std::vector<std::string> names = parameter_names(scenario);
    std::vector<std::pair<std::string, std::string>> values = scenario.cases.front().given.all();
    for (const std::string_view word : words) {
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        if (equals == std::string_view::npos || std::ranges::find(names, name) == names.end()) {
            unknown("parameter", word, names, std::identity());
        }
        const auto known = std::ranges::find(values, name, &std::pair<std::string, std::string>::first);
        if (known == values.end()) {
            values.emplace_back(name, word.substr(equals + 1));
        } else {
            known->second = word.substr(equals + 1);
        }
    }
    parameters given;
    for (auto& [name, value] : values) given.add(std::move(name), std::move(value));
    const auto is_this = [&](const scenario_case& one) { return one.given == given; };
    if (std::ranges::none_of(scenario.cases, is_this)) {
        unknown("case of", scenario.name, scenario.cases, [](const scenario_case& one) {
            std::string text;
            for (const auto& [name, value] : one.given.all())
                text += (text.empty() ? "" : ",") + name + "=" + value;
            return text;
        });
    }
    return given;
}

int run_one(const command& wanted) {
    const registered_scenario& scenario = find_scenario(everything(), wanted.words[0]);
    const pairing& pair = find_pairing(scenario, wanted.words[1]);
    parameters given = fill_in(*scenario.info, {wanted.words.begin() + 2, wanted.words.end()});
    if (const std::string why = pair.refuses(given); !why.empty()) {
        throw bad_command_line{std::string(pair.contestant->name) + " is not applicable: " + why};
    }

#if defined(_WIN32)
    if (const std::string_view futex = pair.contestant->futex; !futex.empty() && !started_with(futex))
        return start_with(futex);
#endif

    std::optional<syscall_counter> counter;
    if (wanted.count_syscalls) counter.emplace();  // before any thread exists
    const double budget_seconds = wanted.budget_ms * 1e-3;
    context run(std::move(given), wanted.seed, budget_seconds, counter ? &*counter : nullptr);
    if (counter && !counter->is_open()) run.note("system calls not counted: " + counter->why_not());
    start_watchdog(wanted.watchdog_s);
    // The scenario runs in a second thread, for two reasons. In a process with one thread the C library leaves out
    // atomic operations, and its mutex would look cheap. And scenarios pin the thread that they run in; that must not
    // be the main thread, which libraries ask how many cores there are.
    std::thread([&] { (wanted.mode == command::mode::check ? pair.check : pair.run)(run); }).join();
    std::puts(report(scenario, *pair.contestant, run, budget_seconds).c_str());
    return run.failures().empty() ? 0 : 1;
}

}  // namespace
}  // namespace lab

int main(int count, char** texts) {
    try {
        const lab::command wanted = lab::parse(count, texts);
        if (wanted.mode != lab::command::mode::list) return lab::run_one(wanted);
        std::puts(lab::describe(lab::everything()).c_str());
        return 0;
    } catch (const lab::bad_command_line& error) {
        std::fprintf(stderr, "%s: %s\n", texts[0], error.message.c_str());
        return 2;
    }
}
