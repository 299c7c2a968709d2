// SPDX-License-Identifier: Apache-2.0
// What the broadcast is for (docs/requirements.md#the-broadcast): one fdatasync for many threads, all of them woken
// after it.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "crowd.hpp"
#include "log_file.hpp"
#include "physical.hpp"

#include <utility>
#include <vector>

namespace lab {
namespace {

// The end of the flush that this thread has led; 0 again once the thread has taken the time since then.
thread_local std::int64_t led_until = 0;

struct group_commit : scenario_of<group_commit, committers> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "group_commit",
            .question = "What does a commit cost when one thread flushes for a whole group?",
            .method =
                "each thread commits again and again; the leader of a group writes 128 bytes for each "
                "member and calls fdatasync once: on a file on the disk (below /var/tmp), in memory, or on a "
                "device (in memory, and then the leader sleeps for 100 µs). A commit: wall time over all "
                "threads; its latency is from the call to the return; held is "
                "what the leader needs after its flush. Unpinned",
            .columns = {{"commit", "value", "time a commit", "ns", true},
                        {"latency", "median", "latency", "ns"},
                        {"latency", "p99", "p99", "ns", true},
                        {"held", "median", "leader held", "ns", true},
                        cpu_column,
                        {"syncs", "value", "fdatasyncs", "count"},
                        switches_column,
                        syscalls_column},
            .cases = {{{{"threads", "8"}, {"on", "disk"}}, tier::full},
                      {{{"threads", "64"}, {"on", "disk"}}, tier::quick},
                      {{{"threads", "256"}, {"on", "disk"}}, tier::standard},
                      {{{"threads", "8"}, {"on", "device"}}, tier::full},
                      {{{"threads", "64"}, {"on", "device"}}, tier::standard},
                      {{{"threads", "256"}, {"on", "device"}}, tier::standard},
                      {{{"threads", "8"}, {"on", "memory"}}, tier::full},
                      {{{"threads", "64"}, {"on", "memory"}}, tier::quick},
                      {{{"threads", "256"}, {"on", "memory"}}, tier::standard}},
            .floor =
                "a commit: write and fdatasync alone, shared by all threads; held: FUTEX_WAKE of one sleeper",
        };
        return about;
    }

    static bool on_disk(const parameters& given) { return given.text("on") == "disk"; }
    static constexpr std::int64_t device_takes = 100'000;

    // Writes a group, as the disk, the device or the memory would.
    static void append(log_file& log, std::size_t count, const parameters& given) {
        log.append(count);
        if (given.text("on") == "device") sleep_until(now() + device_takes);
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        return on_disk(given) && !log_file::has_disk() ? "there is no disk below /var/tmp" : "";
    }

    // A sample with a handful of flushes says nothing: the disk gets three times the budget.
    static std::int64_t budget_of(const context& run) {
        return on_disk(run.given) ? 3 * run.budget_ns() : run.budget_ns();
    }

    // Of all flushes so far.
    struct progress {
        std::atomic<std::uint64_t> begun{0}, ended{0}, covered{0};
    };

    struct alignas(128) submitter {
        std::vector<std::int64_t> latencies, held;
        std::uint64_t commits = 0;
        bool early = false;
    };

    template <class Committer>
    static void run_with(context& run) {
        log_file log(on_disk(run.given));
        if (!run.require(log.is_open(), "a file for the log can be created")) return;
        const std::size_t wanted = run.given.number("threads");
        progress sofar;
        bool overlapped = false;
        Committer committer([&](std::size_t count) {
            if (sofar.begun.fetch_add(1) != sofar.ended.load()) overlapped = true;
            append(log, count, run.given);
            sofar.covered.fetch_add(count);
            sofar.ended.fetch_add(1);
            led_until = now();
        });
        std::atomic<bool> recording{false}, over{false};
        std::vector<submitter> submitters(wanted);
        thread_group threads(wanted, [&](std::size_t index) {
            submitter& self = submitters[index];
            while (!over.load(std::memory_order_relaxed)) commit_once(committer, sofar, self, recording);
        });
        if (!threads.shortage().empty()) run.note(threads.shortage());
        threads.go();
        sleep_until(now() + budget_of(run) / 10);
        recording = true;
        measure_while_running(run, sofar);
        over = true;
        threads.join();

        std::uint64_t submitted = 0;
        bool early = false;
        for (const submitter& one : submitters) {
            for (const std::int64_t took : one.latencies)
                run.distribution("latency").record_nanoseconds(took);
            for (const std::int64_t took : one.held) run.distribution("held").record_nanoseconds(took);
            submitted += one.commits;
            early |= one.early;
        }
        run.require(log.is_whole(), "the log was written");
        run.require(!overlapped, "flushes follow each other");
        run.require(!early, "a submission returns after a flush that began after it");
        run.require(sofar.covered.load() == submitted, "each submission is covered once");
    }

    template <class Committer>
    static void commit_once(Committer& committer, const progress& sofar, submitter& self,
                            const std::atomic<bool>& recording) {
        const std::uint64_t before = sofar.begun.load();
        const std::int64_t start = now();
        committer.submit();
        const std::int64_t stop = now();
        if (sofar.ended.load() <= before) self.early = true;
        ++self.commits;
        const std::int64_t flushed = std::exchange(led_until, 0);
        if (!recording.load(std::memory_order_relaxed)) return;
        self.latencies.push_back(stop - start);
        if (flushed != 0) self.held.push_back(stop - flushed);
    }

    static void measure_while_running(context& run, const progress& sofar) {
        timed_section section(run);
        const std::int64_t start = now();
        const std::uint64_t flushes = sofar.ended.load(), commits = sofar.covered.load();
        // At least one group, however slow the disk.
        do {
            sleep_until(now() + budget_of(run));
        } while (sofar.ended.load() == flushes);
        const auto made = sofar.covered.load() - commits;
        run.value("commit", static_cast<double>(now() - start) / static_cast<double>(made));
        run.value("syncs", static_cast<double>(sofar.ended.load() - flushes) / static_cast<double>(made));
        section.stop(made, 0, 1);
    }

    static void run_floor(context& run) {
        log_file log(on_disk(run.given));
        if (!run.require(log.is_open(), "a file for the log can be created")) return;
        const std::uint64_t threads = run.given.number("threads");
        physical::wake_one_sleeper(run, "held");
        std::uint64_t commits = 0;
        timed_section section(run);
        const std::int64_t start = now(), end = start + budget_of(run);
        for (std::int64_t from = start, to = 0; to < end; from = to) {
            append(log, threads, run.given);
            commits += threads;
            to = now();
            run.distribution("latency").record_nanoseconds(to - from);
        }
        run.value("commit", static_cast<double>(now() - start) / static_cast<double>(commits));
        run.value("syncs", 1.0 / static_cast<double>(threads));
        section.stop(commits);
        run.require(log.is_whole(), "the log was written");
    }
};

// The wake-up alone, of more threads than a disk would keep waiting.
struct group_wake : scenario_of<group_wake, committers> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "group_wake",
            .question =
                "How long does the end of a flush hold its leader, and when is the last of the group awake?",
            .method =
                "while one flush is held up, all threads gather in the next group until all of them sleep "
                "in the kernel; then their leader flushes nothing. Times are from the end of that flush. "
                "held: until the leader's submission returns; last: until the last member's has. CPU a "
                "thread as in broadcast. Unpinned",
            .columns = {{"held", "median", "leader held", "ns", true},
                        {"last", "median", "last awake", "ns", true},
                        {"awake", "median", "half awake", "ns"},
                        {"cpu", "value", "CPU a thread", "ns", true},
                        {"switches", "value", "switches a thread", "count"},
                        {"syscalls", "value", "system calls a thread", "count"}},
            .cases = {{{{"threads", "100"}}, tier::quick},
                      {{{"threads", "1000"}}, tier::full},
                      {{{"threads", "5000"}}, tier::standard}},
            .floor = "held: FUTEX_WAKE of one sleeper; CPU: one hand-off between two threads on a core",
        };
        return about;
    }

    static void run_floor(context& run) {
        physical::wake_one_sleeper(run, "held");
        physical::hand_offs_on_one_core(run, "hand_off");
        run.value("cpu", static_cast<double>(run.distribution("hand_off").quantile(0.5)) / 1e3);
    }

    template <class Committer>
    static void run_with(context& run) {
        end_of_flush<Committer> subject(run);
        crowd(run, subject).wake_again_and_again();
    }

    // A thread of its own leads the previous group, whose flush lasts until fire().
    template <class Committer>
    struct end_of_flush {
        explicit end_of_flush(context& run)
            : members(run.given.number("threads")),
              committer([this, &run](std::size_t count) { flush(run, count); }),
              holder(1, [this](std::size_t) { hold_again_and_again(); }) {
            holder.go();
        }
        ~end_of_flush() {
            over = true;
            begin.open();
            held_up.open();
            holder.join();
        }

        void arm() {
            held_up.close();
            holding = false;
            begin.open();
            while (!holding.load()) sleep_until(now() + 20'000);
        }
        void wait() {
            committer.submit();
            if (std::exchange(led_until, 0) != 0) returned = now();
        }
        void fire() { held_up.open(); }

        void flush(context& run, std::size_t count) {
            if (!holding.exchange(true)) {
                held_up.pass();
                return;
            }
            if (!over.load() && count != members) run.note("a group did not include every thread");
            led_until = start = now();
        }
        void hold_again_and_again() {
            for (;;) {
                begin.pass();
                if (over.load()) return;
                begin.close();
                committer.submit();
            }
        }

        std::size_t members;
        Committer committer;
        std::int64_t start = 0, returned = 0;
        std::atomic<bool> holding{true}, over{false};
        gate begin, held_up;
        thread_group holder;
    };
};

const registration<group_commit> group_commit_registered{lineup{}};
const registration<group_wake> group_wake_registered{lineup{}};

}  // namespace

}  // namespace lab
