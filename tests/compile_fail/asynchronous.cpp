// SPDX-License-Identifier: Apache-2.0
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/process.hpp>
#include <tocsin/sender.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/task.hpp>

#include <utility>
#include <vector>

tocsin::auto_reset_event a;

void fine() { (void)tocsin::async_wait({.until = std::chrono::seconds(5)}, a); }

std::vector<tocsin::source> list{a};

// expect only: this call takes no list: write the sources one by one
#ifdef MISUSE_await_list
tocsin::task<> wait() { co_await tocsin::async_wait_any(list); }
#endif

// expect only: or make a tocsin::span_operation of the list
#ifdef MISUSE_await_list_with_limits
tocsin::task<> wait() { (void)co_await tocsin::async_wait_all({.until = std::chrono::seconds(5)}, list); }
#endif

// expect only: this call takes no list
#ifdef MISUSE_await_array_of_events
tocsin::auto_reset_event events[2];
tocsin::task<> wait() { co_await tocsin::async_wait_any(events); }
#endif

// expect only: this call takes no list
#ifdef MISUSE_operation_of_list
void wait() {
    auto first = tocsin::any_operation([](tocsin::any_result) noexcept {}, list);
}
#endif

// expect only: this call takes no list
#ifdef MISUSE_sender_of_list
void wait() { (void)tocsin::as_sender(list); }
#endif

// expect only: write the sources without braces, async_wait_any\(a, b\)
#ifdef MISUSE_await_braces
void wait() { (void)tocsin::async_wait_any({a, a}); }
#endif

// expect only: limits come first: async_wait_any\({.until = 50ms}, a, b\)
#ifdef MISUSE_await_limits_last
tocsin::task<> wait() { (void)co_await tocsin::async_wait_any(a, a, {.until = std::chrono::seconds(5)}); }
#endif

// expect only: limits come first: async_wait\({.until = 50ms}, a\)
#ifdef MISUSE_await_one_with_limits_last
tocsin::task<> wait() { (void)co_await tocsin::async_wait(a, {.until = std::chrono::seconds(5)}); }
#endif

// expect only: a duration is no source
#ifdef MISUSE_await_duration
void wait() { (void)tocsin::async_wait_any(a, std::chrono::seconds(5)); }
#endif

// expect only: for a descriptor write tocsin::readable\(number\)
#ifdef MISUSE_await_number
void wait(int descriptor) { (void)tocsin::async_wait(descriptor); }
#endif

void start() {
    tocsin::any_operation([](tocsin::any_result) noexcept {}, a).start();
}

// expect: the function of an any_operation is called with an any_result
#ifdef MISUSE_operation_of_wrong_function
void start_wrongly() {
    tocsin::any_operation([](const char*) noexcept {}, a).start();
}
#endif

void send() { (void)tocsin::as_sender({.until = std::chrono::seconds(5)}, a); }

// expect only: nobody can set a temporary
#ifdef MISUSE_sender_of_temporary_event
auto made() { return tocsin::as_sender(a, tocsin::auto_reset_event()); }
#endif

int wait_for(tocsin::task<int> asked) { return tocsin::sync_wait(std::move(asked)); }

// expect only: tocsin: sync_wait\(\) takes the task over: write sync_wait\(std::move\(task\)\)
#ifdef MISUSE_sync_wait_for_named_task
int wait(tocsin::task<int> asked) { return tocsin::sync_wait(asked); }
#endif

void wait_for_process(const tocsin::process_end& child) { (void)tocsin::async_wait_any(a, child); }

// expect only: a wait for all takes no descriptor, process, signal or object that processes share
#ifdef MISUSE_wait_all_for_process
void wait(const tocsin::process_end& child) {
    (void)tocsin::async_wait_all({.until = std::chrono::seconds(5)}, a, child);
}
#endif

tocsin::shared_auto_reset_event shared;

void wait_for_shared() {
    auto first = tocsin::any_operation([](tocsin::any_result) noexcept {}, a, shared);
}

// expect only: a wait for all takes no descriptor, process, signal or object that processes share
#ifdef MISUSE_wait_all_for_shared_event
void wait() {
    auto both = tocsin::all_operation([](tocsin::wait_status) noexcept {}, a, shared);
}
#endif
