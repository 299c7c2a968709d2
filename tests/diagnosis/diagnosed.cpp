// SPDX-License-Identifier: Apache-2.0
// A program in which threads wait for one thing of each kind, and two are in a deadlock. gdb_test.py looks at it with
// gdb. Prints "ready" when all of them are parked, and exits when its input ends.
#include <tocsin/tocsin.hpp>
#include <tocsin/watchdog.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

using namespace std::chrono_literals;

// Not in a namespace, so that gdb finds them by these names.
tocsin::manual_reset_event named;
tocsin::auto_reset_event idle;
tocsin::manual_reset_event opened(true);
tocsin::latch countdown(3);
tocsin::barrier<> phases(2);
tocsin::wait_group pending(2);
tocsin::auto_reset_priority_event urgent;
tocsin::counting_semaphore<8, tocsin::queue_order::priority> urgent_permits(3);
tocsin::counting_semaphore<> permits(0);
tocsin::counting_semaphore<> free_permits(5);
tocsin::condition changed;
std::atomic<std::uint32_t> word{7};
tocsin::word_lock<> left;
std::atomic<std::uint64_t> bits{0};
tocsin::bit_lock<std::uint64_t> right(bits, 9);
tocsin::word_lock<> unlocked;
tocsin::channel<int> jobs(2);
tocsin::any_result stopped{tocsin::wait_status::stopped};
tocsin::any_result found{tocsin::wait_status::signaled, 3};
tocsin::set_result some{tocsin::wait_status::signaled, 2};
tocsin::source source_of_named = named;
tocsin::source descriptor = tocsin::readable(0);
tocsin::deadline endless = tocsin::deadline::never();
tocsin::ticker hourly(1h);
tocsin::ticker halted(1ms);
tocsin::spin_policy thrifty = tocsin::spin_policy::none();
tocsin::coalescer seldom(2ms);
tocsin::wait_set members;
tocsin::wait_set slept_in;
tocsin::auto_reset_event member_of_set;
tocsin::auto_reset_event polled_with;
tocsin::auto_reset_event viewed;
tocsin::pollable watched(viewed);
tocsin::wait_timer snooze;
tocsin::wait_timer idle_timer;
tocsin::driver loop;
tocsin::signal_source hangups(SIGHUP);
tocsin::group_commit<int> commits([](const tocsin::commit_group<int>&) {});  // also links its probes
tocsin::shared_manual_reset_event between_processes;
tocsin::auto_reset_event flush_may_end;
tocsin::group_commit<int> slow_commits([](const tocsin::commit_group<int>&) { flush_may_end.wait(); });
tocsin::wait_watchdog watchdog = tocsin::report_waits_longer_than(1h, [](const tocsin::parked_wait&) {});
tocsin::entry_list nobody;
tocsin::wake_list none_woken;
tocsin::job no_job = [] {};
tocsin::handler_thread handler;
tocsin::stop_token token;
tocsin::stop_reference no_stop;
tocsin::stop_reference some_stop = token;
int payload = 1;
tocsin::channel<int> full(1);
auto sending = full.sending(payload);
tocsin::auto_reset_event asked;
tocsin::auto_reset_event asked_too;
auto waiting_operation = tocsin::any_operation([](tocsin::any_result) noexcept {}, asked, asked_too);
auto idle_operation = tocsin::all_operation([](tocsin::wait_status) noexcept {}, idle);
auto event_wait = tocsin::async_wait(idle);
auto awaiter = event_wait.operator co_await();
auto several = tocsin::async_wait_any(viewed, idle);

tocsin::task<int> gives_seven() { co_return 7; }
tocsin::task<> throws() {
#if defined(__cpp_exceptions)
    throw std::runtime_error("no reason");
#endif
    co_return;
}
tocsin::auto_reset_event task_is_started;
tocsin::auto_reset_event task_may_end;
tocsin::task<> waits_for_ever() {
    task_is_started.set();
    co_await tocsin::async_wait(task_may_end);
}
tocsin::task<int> unstarted_task = gives_seven();
tocsin::task<> started_task = waits_for_ever();
tocsin::task<int> ended_task = gives_seven();
tocsin::task<> failed_task = throws();
tocsin::task<> no_task = throws();

namespace {

void until_parked(const volatile void* address) {
    while (tocsin::waiting_on(address) == 0) std::this_thread::sleep_for(1ms);
}

}  // namespace

// The names by which the test finds the callers.
void waits_for_the_named_event() { named.wait(); }
void takes_left_then_right(std::atomic<int>& held) {
    left.lock();
    ++held;
    while (held.load() != 2) std::this_thread::yield();
    right.lock();
}
void takes_right_then_left(std::atomic<int>& held) {
    right.lock();
    ++held;
    while (held.load() != 2) std::this_thread::yield();
    left.lock();
}

// Two threads, named ping and pong, wake each other until the input ends. Never returns.
[[noreturn]] void ping_pong() {
    static tocsin::auto_reset_event ping;
    static tocsin::auto_reset_event pong;
    std::thread([] {
        pthread_setname_np(pthread_self(), "pong");
        for (;; pong.set()) ping.wait(tocsin::spin_policy::none());
    }).detach();
    std::thread([] {
        pthread_setname_np(pthread_self(), "ping");
        for (;; std::this_thread::sleep_for(1ms)) {
            ping.set();
            pong.wait(tocsin::spin_policy::none());
        }
    }).detach();
    std::puts("ready");
    std::fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    std::_Exit(0);
}

int main(int count, char** arguments) {
    commits.submit(0);
    if (count == 2 && arguments[1] == std::string_view("ping-pong")) ping_pong();
    static std::atomic<int> held{0};
    tocsin::name_address(&named, "shutdown");
    tocsin::name_address(&jobs, "jobs");
    snooze.reset(1h);
    members.add(snooze, 0);
    waiting_operation.start();
    {
        tocsin::job moved = std::move(no_job);
    }
    halted.stop();
    (void)tocsin::sync_wait(tocsin::when_any(ended_task));
    (void)tocsin::sync_wait(tocsin::when_any(failed_task));
    {
        const tocsin::task<> moved = std::move(no_task);
    }
    std::thread([] { (void)tocsin::sync_wait(tocsin::when_any(started_task)); }).detach();
    task_is_started.wait();
    static tocsin::manual_reset_event both_posted;
    static tocsin::manual_reset_event never;
    handler.post([] { both_posted.wait(); });
    until_parked(&both_posted);
    for (int i = 0; i != 2; ++i)
        handler.post([] { never.wait(); });  // the handler thread takes these together
    both_posted.set();
    until_parked(&never);
    handler.post([] { never.wait(); });

    std::thread([] { waits_for_the_named_event(); }).detach();
    std::thread([] { countdown.wait(); }).detach();
    std::thread([] { phases.arrive_and_wait(); }).detach();
    std::thread([] { pending.wait(); }).detach();
    std::thread([] { permits.acquire(); }).detach();
    std::thread([] { (void)tocsin::wait_on_address(&word, 7u); }).detach();
    std::thread([] { (void)jobs.receive(); }).detach();
    std::thread([] {
        static tocsin::word_lock<> lock;
        lock.lock();
        changed.wait(lock);
    }).detach();
    std::thread([] {
        slept_in.add(member_of_set, 1);
        tocsin::ready_item one[1];
        (void)slept_in.wait(one);
    }).detach();
    static int silent[2];
    if (pipe(silent) != 0) return 2;
    std::thread([] { (void)tocsin::wait_any(polled_with, tocsin::readable(silent[0])); }).detach();
    std::thread([] { between_processes.wait(); }).detach();
    for (int i = 0; i != 2; ++i) std::thread([] { (void)slow_commits.submit(1); }).detach();
    std::thread([] { takes_left_then_right(held); }).detach();
    std::thread([] { takes_right_then_left(held); }).detach();
    const std::initializer_list<const volatile void*> all{
        &named, &countdown, &phases, &pending,     &permits,  &word,         &changed,          &left,
        &bits,  &jobs,      &never,  &polled_with, &slept_in, &slow_commits, &between_processes};
    for (const volatile void* each : all) until_parked(each);
    std::puts("ready");
    std::fflush(stdout);
    char byte;
    const bool ended = read(0, &byte, 1) <= 0;
    std::_Exit(ended && idle.is_set() && opened.is_set() && unlocked.try_lock() && free_permits.try_acquire()
                   ? 1
                   : 0);
}
