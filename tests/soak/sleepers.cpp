// SPDX-License-Identifier: Apache-2.0
#include "sleepers.hpp"

#include "address_scenes.hpp"
#include "complaints.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include <signal.h>

namespace soak {
namespace {

using namespace std::chrono_literals;
using tocsin::address_status;
using tocsin::wait_status;

// Reading a thread's clock adds nothing to it; each time the thread runs adds some microseconds.
constexpr auto nothing = 1ms;

// A thread that sleeps while its process is stopped and continued leaves its sleep twice: to stop, and to sleep again.
constexpr long switches_of_a_stop = 2;
std::atomic<long> continued{0};

void count_continues() {
    struct sigaction action = {};
    action.sa_handler = [](int) { continued.fetch_add(1); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGCONT, &action, nullptr);
}

}  // namespace

struct sleepers::all_of_them {
    tocsin::auto_reset_event token;
    tocsin::auto_reset_event timed_token;
    tocsin::auto_reset_event token_on_the_wall_clock;
    tocsin::manual_reset_event gate;
    tocsin::manual_reset_event stoppable_gate;
    tocsin::word_lock<> lock;
    std::atomic<std::uint16_t> flags{0};
    std::stop_source stop;
    const std::chrono::system_clock::time_point tomorrow = std::chrono::system_clock::now() + 24h;

    support::thread_group threads;
    std::vector<std::chrono::nanoseconds> processor_time_before;
    std::vector<long> switches_before;
    long continued_before = 0;
    bool awake = false;

    template <class Sleep>
    void start_sleeper(const std::string& name, Sleep sleep) {
        threads.start("sleeper: " + name, [name, sleep] {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_BLOCK, &all, nullptr);  // only other threads handle signals
            expect(sleep(), "a sleeper's wait ended in another way: " + name);
        });
    }

    template <class Word>
    void start_at_address() {
        start_sleeper(std::to_string(sizeof(Word)) + "-byte address", [] {
            return tocsin::wait_on_address(&undisturbed_word<Word>(), Word{0}) == address_status::woken;
        });
    }

    void fill() {
        (void)lock.try_lock();
        (void)tocsin::bit_lock(flags, 3).try_lock();
        start_sleeper("auto event", [this] { return token.wait(), true; });
        start_sleeper("auto event, for the longest time", [this] {
            return timed_token.wait_for(std::chrono::nanoseconds::max()) == wait_status::signaled;
        });
        start_sleeper("auto event, until tomorrow", [this] {
            return token_on_the_wall_clock.wait_until(tomorrow) == wait_status::signaled;
        });
        for (int i = 0; i < 2; ++i) start_sleeper("manual event", [this] { return gate.wait(), true; });
        start_sleeper("manual event, until stopped",
                      [this] { return stoppable_gate.wait(stop.get_token()) == wait_status::stopped; });
        start_sleeper("lock", [this] { return lock.lock(), lock.unlock(), true; });
        start_sleeper("bit lock, for an hour or two", [this] {
            tocsin::bit_lock bit(flags, 3);
            return bit.try_lock_for(48h) && (bit.unlock(), true);
        });
        start_at_address<std::uint8_t>();
        start_at_address<std::uint16_t>();
        start_at_address<std::uint32_t>();
        start_at_address<std::uint64_t>();
    }

    void wait_until_all_sleep() {
        continued_before = continued.load();
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const pid_t id = threads.id(i);
            support::until("a sleeper to be parked", [&] {
                for (const auto& each : tocsin::parked_waits()) {
                    if (each.thread == static_cast<std::uint64_t>(id)) return true;
                }
                return false;
            });
            threads.until_asleep(i);
            processor_time_before.push_back(support::cpu_time_of(threads.handle(i)));
            switches_before.push_back(support::switches_of(id).voluntary);
        }
    }

    sleepers_report look() {
        sleepers_report report;
        report.threads = threads.size();
        const long by_stops = switches_of_a_stop * (continued.load() - continued_before);
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const auto used = support::cpu_time_of(threads.handle(i)) - processor_time_before[i];
            const long woken = support::switches_of(threads.id(i)).voluntary - switches_before[i];
            report.processor_time += used;
            report.wake_ups += woken;
            expect(used < nothing && woken <= by_stops,
                   "a sleeper was woken " + std::to_string(woken) + " times");
        }
        return report;
    }

    void wake() {
        awake = true;
        token.set();
        timed_token.set();
        token_on_the_wall_clock.set();
        gate.set();
        gate.reset();
        stop.request_stop();
        lock.unlock();
        tocsin::bit_lock(flags, 3).unlock();
        tocsin::wake_by_address_one(&undisturbed_word<std::uint8_t>());
        tocsin::wake_by_address_one(&undisturbed_word<std::uint16_t>());
        tocsin::wake_by_address_one(&undisturbed_word<std::uint32_t>());
        tocsin::wake_by_address_one(&undisturbed_word<std::uint64_t>());
        threads.join();
    }
};

sleepers::sleepers() : all_(std::make_unique<all_of_them>()) {
    count_continues();
    all_->fill();
    all_->wait_until_all_sleep();
}

sleepers::~sleepers() {
    if (!all_->awake) all_->wake();
}

sleepers_report sleepers::wake() {
    const sleepers_report report = all_->look();
    all_->wake();
    return report;
}

}  // namespace soak
