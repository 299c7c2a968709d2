// SPDX-License-Identifier: Apache-2.0
// Model tests read like small programs:
//
//     const auto result = explore({}, [](run& r) {
//         atomic<int> ready{0};
//         plain<int> data{0};
//         r.spawn("producer", [&] {
//             data = 42;
//             ready.store(1, std::memory_order_release);
//         });
//         r.spawn("consumer", [&] {
//             if (ready.load(std::memory_order_acquire)) check(data == 42, "data arrived");
//         });
//         r.join_all();
//     });
//     EXPECT_TRUE(result.exhausted()) << result.text();
//
// The body is itself a model thread, "main". It runs once per execution and must depend on nothing but the search's
// choices: no clocks, no random numbers, and no state that outlives the body except atomics and plains, which the
// explorer restores. Code between two visible operations is atomic, so the counters of a test may be ordinary
// variables. Decisions must not depend on such a variable, except through wait_until(), because the reduction does not
// see it.
#pragma once

#include "atomic.hpp"
#include "futex.hpp"
#include "options.hpp"

#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::model {

class run {
public:
    class thread {
    public:
        void join(std::source_location where = std::source_location::current()) const;
        int number() const noexcept { return number_; }

    private:
        friend class run;
        explicit thread(int number) : number_(number) {}
        int number_;
    };

    // The thread starts at once and runs up to its first visible operation.
    thread spawn(std::string_view name, std::function<void()> body);

    // Call it before the body returns, because that destroys what is on the body's stack.
    void join_all(std::source_location where = std::source_location::current());

    // Explores all of 0 .. count - 1.
    unsigned choose(unsigned count, std::string_view what = {},
                    std::source_location where = std::source_location::current());

    // From here on, and until it is told otherwise, an exhaustive search makes one schedule only. This is for what
    // comes before and after the part that matters. It can't be used with partial-order reduction; drawn searches
    // ignore it.
    void fix_schedule(bool on = true);

    void check(bool condition, std::string_view text,
               std::source_location where = std::source_location::current());
};

using test_body = std::function<void(run&)>;

report explore(const options& how, const test_body& body);

// Repeats the one run that a report's replay string describes, and writes its table.
report replay(const options& how, std::string_view text, const test_body& body);

// Fails the run if the condition is false. Any model thread may call it.
void check(bool condition, std::string_view text,
           std::source_location where = std::source_location::current());

// Waits until a fact is true, without polling. It is for tests that need another thread to have reached some point,
// such as a sleep. The fact is evaluated outside the model: atomics show their newest values, and nothing is a step.
// The fact must not lock or wait, and it orders nothing. Once true, it must stay true until the waiting thread has
// continued. A search with partial-order reduction fails a run in which it does not.
void wait_until(const std::function<bool()>& fact,
                std::source_location where = std::source_location::current());

// Starts a thread that need not end: join_all() does not wait for that thread, and a run may end while it runs or
// sleeps. Any model thread may call this.
void spawn_service(std::string_view name, std::function<void()> body);

// Ends a thread where it stands, as a kill does: before any of its steps, or in its sleep. Returns whether the thread
// still ran. A search explores every step after which this may happen, and the runs in which the thread ends on its own
// before. What the thread has done comes before the return. What it owns is lost.
bool end_thread(int thread, std::source_location where = std::source_location::current());

// The changes that a thread has made to an atomic of eight bytes so far, as pairs of the old and the new value. This is
// not a step.
std::vector<std::pair<std::uint64_t, std::uint64_t>> changes_by(int thread, const void* atomic);

// For a fact of wait_until(): whether every thread has ended, sleeps, joins or waits for a fact. Sleepers may still
// leave by a deadline or spuriously.
bool others_are_blocked();

// A line for the table.
void note(std::string_view text, std::source_location where = std::source_location::current());

}  // namespace tocsin::model
