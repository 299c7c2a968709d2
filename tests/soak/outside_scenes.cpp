// SPDX-License-Identifier: Apache-2.0
// What comes from outside of the threads: processes that end, and signals.
#include "complaints.hpp"
#include "scene.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>
#include <tocsin/process.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace soak {
namespace {

using namespace std::chrono_literals;

// Each child's end reaches every wait for it, tells how the child ended, and reaps nothing.
class processes : public scene {
public:
    explicit processes(support::random_source& random) : threads_(some_threads(random)) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i != threads_; ++i) {
            hands.start(counted, "parent", [this](worker& self) {
                while (!self.is_over() && watch_a_child(self)) {
                }
            });
        }
    }

    void check() override { expect(!never_set_.is_set(), "a wait for a process set an event"); }

private:
    // Returns false if the system has no descriptor for the end of a process.
    bool watch_a_child(worker& self) {
        const bool killed = self.random.one_in(2);
        const auto code = static_cast<unsigned>(self.random.below(200));
        const auto nap = static_cast<unsigned>(self.random.below(2'000));
        const pid_t child = fork();
        if (child == 0) {
            if (killed) {
                alarm(600);  // if the parent is gone
                for (;;) pause();
            }
            usleep(nap);
            _exit(static_cast<int>(code));
        }
        expect(child > 0, "no process could be started");
        if (child < 0) return false;
        self.counts.in();
        const bool watched = watch(self, child, killed, nap);
        int status = 0;
        const pid_t reaped = waitpid(child, &status, 0);
        expect(reaped == child, "somebody reaped another's child");
        expect(
            killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(code),
            "a child ended in another way than it was to");
        self.counts.out();
        self.done();
        return watched;
    }

    bool watch(worker& self, pid_t child, bool killed, unsigned nap) try {
        const tocsin::process_end ended(child);
        if (killed) {
            if (self.random.one_in(2)) usleep(nap);
            kill(child, SIGKILL);
        }
        await(self, ended);
        expect(ended.try_wait(), "a process that has ended runs again");
        const auto how = ended.exit_status();
        expect(how && how->by_signal == killed, "a source doesn't know how its process ended");
        self.counts.race();
        return true;
    } catch (const std::system_error&) {
        kill(child, SIGKILL);
        return false;
    }

    void await(worker& self, const tocsin::process_end& ended) {
        if (self.random.one_in(3)) {
            tocsin::wait_set set;
            set.add(ended, 7);
            std::array<tocsin::ready_item, 2> ready;
            const auto found = self.timed([&] { return set.wait(ready); });
            expect(found.count == 1 && ready[0].tag == 7, "a set gave another member than the process");
            return;
        }
        while (
            tocsin::wait_any({.until = nanoseconds(self.random.below(500'000))}, never_set_, ended).status ==
            wait_status::timed_out) {
            self.done();
        }
    }

    const int threads_;
    tocsin::auto_reset_event never_set_;
};

std::atomic<std::uint64_t> former_handled{0};

// A signal that arrives when no source is left goes to this handler, which was there before all sources.
int with_a_handler(int number) {
    static const bool installed = [number] {
        struct sigaction former{};
        former.sa_handler = [](int) { former_handled.fetch_add(1); };
        former.sa_flags = static_cast<int>(SA_RESTART);
        return sigaction(number, &former, nullptr) == 0;
    }();
    expect(installed, "a handler could not be installed");
    return number;
}

// Each delivery reaches a thread that waits for the signal. A sender gives the next signal only when somebody has heard
// this one, so a lost signal makes it hang. Some threads make and destroy sources of the same signal meanwhile.
class signals : public scene {
public:
    explicit signals(support::random_source& random)
        : senders_(some_threads(random)), source_(with_a_handler(SIGUSR2)) {}

    void enter(crew& hands, book& counted) override {
        still_sending_.store(senders_);
        for (int i = 0; i != senders_; ++i)
            hands.start(counted, "sender", [this](worker& self) { send(self); });
        for (int i = 0; i != 2; ++i) hands.start(counted, "listener", [this](worker& self) { listen(self); });
        hands.start(counted, "coming and going", [this](worker& self) { come_and_go(self); });
    }

    void end() override { closing_.set(); }

    void check() override {
        expect(heard_.load() >= sent_.load(), "a signal was not heard");
        expect(former_handled.load() != 0, "the handler that was there before the sources was not called");
    }

private:
    void send(worker& self) {
        do {  // at least once
            const std::uint64_t mine = sent_.fetch_add(1) + 1;
            self.counts.in();
            if (self.random.one_in(2)) {
                kill(getpid(), SIGUSR2);
            } else {
                pthread_kill(pthread_self(), SIGUSR2);
            }
            while (heard_.load() < mine) std::this_thread::sleep_for(10us);
            self.counts.out();
            self.done();
            std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(300)));
        } while (!self.is_over());
        still_sending_.fetch_sub(1);
    }

    void listen(worker& self) {
        for (;;) {
            const auto how = self.timed([&] { return tocsin::wait_any(source_, closing_); });
            if (source_.try_wait()) {
                hear(sent_.load());
                self.counts.race();
            } else if (how.index == 1 && still_sending_.load() == 0) {
                return;
            }
            self.done();
        }
    }

    void hear(std::uint64_t upto) {
        std::uint64_t before = heard_.load();
        while (before < upto && !heard_.compare_exchange_weak(before, upto)) {
        }
    }

    void come_and_go(worker& self) {
        while (!self.is_over()) {
            tocsin::signal_source another(SIGUSR2);
            pthread_kill(pthread_self(), SIGUSR2);
            self.counts.in();
            expect(tocsin::wait_any({.until = 30s}, another).status == wait_status::signaled,
                   "a new source of a signal did not get it");
            expect(another.try_wait(), "a source that was ready gives nothing");
            self.counts.out();
            self.done();
            std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(1'000)));
        }
    }

    const int senders_;
    tocsin::signal_source source_;
    tocsin::manual_reset_event closing_;
    std::atomic<int> still_sending_{0};
    std::atomic<std::uint64_t> sent_{0};
    std::atomic<std::uint64_t> heard_{0};
};

}  // namespace

std::vector<scene_kind> outside_scenes() {
    return {{"processes",
             [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<processes>(random);
             }},
            {"POSIX signals", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<signals>(random);
             }}};
}

}  // namespace soak
