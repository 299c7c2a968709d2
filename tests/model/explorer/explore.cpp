// SPDX-License-Identifier: Apache-2.0
#include "explore.hpp"

#include "engine.hpp"

#include <cstdio>
#include <exception>

namespace tocsin::model {

namespace {

std::terminate_handler earlier_handler = nullptr;

// Called when an exception has left a noexcept function: names the run before the program ends.
[[noreturn]] void name_the_run() {
    if (engine::active != nullptr)
        std::fprintf(stderr, "terminated in an exploration; replay string: %s\n",
                     engine::active->replay_so_far().c_str());
    if (earlier_handler) earlier_handler();
    std::abort();
}

class terminate_hook {
public:
    terminate_hook() { earlier_handler = std::set_terminate(&name_the_run); }
    ~terminate_hook() { std::set_terminate(earlier_handler); }
    terminate_hook(const terminate_hook&) = delete;
    terminate_hook& operator=(const terminate_hook&) = delete;
};

std::unique_ptr<chooser> make_chooser(const options& how) {
    switch (how.how) {
        case search::random: return make_random(how);
        case search::pct: return make_priorities(how);
        case search::exhaustive: break;
    }
    return make_depth_first(how);
}

std::function<void()> wrapped(const test_body& body) {
    return [&body] {
        run r;
        body(r);
    };
}

}  // namespace

run::thread run::spawn(std::string_view name, std::function<void()> body) {
    return thread(engine::active->spawn(name, std::move(body)));
}

void run::thread::join(std::source_location where) const { engine::active->join(mask_of(number_), where); }

void run::join_all(std::source_location where) { engine::active->join(engine::active->spawned(), where); }

unsigned run::choose(unsigned count, std::string_view what, std::source_location where) {
    return engine::active->choose(count, what, where);
}

void run::fix_schedule(bool on) { engine::active->fix_schedule(on); }

void run::check(bool condition, std::string_view text, std::source_location where) {
    model::check(condition, text, where);
}

void check(bool condition, std::string_view text, std::source_location where) {
    if (!condition && engine::active != nullptr)
        engine::active->fail("check failed: " + std::string(text) + " (" +
                             engine::active->thread_name(engine::active->running()) + ", " +
                             tracer::file_and_line(where) + ")");
}

void wait_until(const std::function<bool()>& fact, std::source_location where) {
    engine::active->wait_until(fact, where);
}

void spawn_service(std::string_view name, std::function<void()> body) {
    engine::active->spawn_service(name, std::move(body));
}

bool end_thread(int thread, std::source_location where) { return engine::active->end_thread(thread, where); }

std::vector<std::pair<std::uint64_t, std::uint64_t>> changes_by(int thread, const void* atomic) {
    return engine::active->changes_by(thread, atomic);
}

bool others_are_blocked() { return engine::active->others_are_blocked(); }

void note(std::string_view text, std::source_location where) {
    if (engine::active != nullptr) engine::active->note(text, where);
}

report explore(const options& how, const test_body& body) {
    const terminate_hook hook;
    engine e(how);
    return e.explore(wrapped(body), make_chooser(how));
}

report replay(const options& how, std::string_view text, const test_body& body) {
    const terminate_hook hook;
    engine e(how);
    e.write_table();
    return e.explore(wrapped(body), make_replayer(from_replay(text)));
}

std::string report::summary() const {
    char line[256];
    std::snprintf(
        line, sizeof line,
        "%llu executions (%llu redundant) in %.3f s, %.0f a second, at most %u steps, %s%s%s%s%s%s",
        static_cast<unsigned long long>(executions), static_cast<unsigned long long>(redundant), seconds,
        seconds > 0 ? static_cast<double>(executions) / seconds : 0.0, longest,
        failed     ? "failed"
        : complete ? "complete"
                   : "not complete",
        preemption_bound >= 0 ? (", preemptions <= " + std::to_string(preemption_bound)).c_str() : "",
        one_schedule ? ", one schedule each" : "",
        hit_stale_distance ? ", distance of stale reads bounded" : "",
        hit_stale_repeats ? ", repetition of stale reads bounded" : "", cut_spins ? ", spins bounded" : "");
    return line;
}

std::string report::text() const {
    std::string all = summary() + '\n';
    if (failed) all += message + '\n' + schedule + "replay: " + replay + '\n';
    return all;
}

}  // namespace tocsin::model
