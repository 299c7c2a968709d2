// SPDX-License-Identifier: Apache-2.0
// Calls that are not waits are no pthread cancellation points: a thread with a pending cancellation returns from them,
// and is cancelled at its next cancellation point. (For waits: APollIsNoCancellationPoint in
// tests/internal/poll_test.cpp.)
#include "child.hpp"
#include "posix.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/process.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#if defined(__GLIBC__)
namespace {

struct objects {
    objects() {
        if (child == 0) _exit(7);
        if (pipe(ends) == 0) set.emplace().add(tocsin::readable(ends[0]), 1);
        pthread_kill(pthread_self(), SIGUSR1);
        try {
            ended.emplace(child);
            tocsin::wait_any(*ended);
        } catch (const std::system_error& error) {
            if (error.code().value() != ENOSYS)
                throw;  // the system has no descriptor for the end of a process
        }
    }

    int ends[2]{};
    tocsin::auto_reset_event event;
    tocsin::pollable watched{event};
    std::optional<tocsin::pollable> other_view{event};
    std::optional<tocsin::signal_source> delivered{SIGUSR1};
    tocsin::signal_source quiet{SIGUSR2};
    std::optional<tocsin::wait_set> set;
    const pid_t child = fork();
    std::optional<tocsin::process_end> ended;
    std::optional<tocsin::handler_thread> handler{std::in_place};
};

// Each returns false if it did not do its work.
const struct {
    const char* name;
    bool (*make)(objects&);
} calls[]{
    {"set() of an event with a pollable", [](objects& of) { return of.event.set(), true; }},
    {"pollable::try_wait", [](objects& of) { return !of.watched.try_wait(); }},
    {"~pollable", [](objects& of) { return of.other_view.reset(), true; }},
    {"the delivery of a signal", [](objects&) { return pthread_kill(pthread_self(), SIGUSR2) == 0; }},
    {"signal_source::try_wait", [](objects& of) { return of.delivered->try_wait(); }},
    {"~signal_source", [](objects& of) { return of.delivered.reset(), true; }},
    {"process_end::try_wait", [](objects& of) { return !of.ended || of.ended->try_wait(); }},
    {"process_end::exit_status",
     [](objects& of) { return !of.ended || of.ended->exit_status() == tocsin::process_exit{7, false}; }},
    {"~process_end", [](objects& of) { return of.ended.reset(), true; }},
    {"~handler_thread", [](objects& of) { return of.handler.reset(), true; }},
    {"~wait_set", [](objects& of) { return of.set.reset(), true; }},
};

// Makes the call in a thread with a pending cancellation. If the call is a cancellation point in noexcept code, the
// process ends.
int make_with_pending_cancellation(bool (*call)(objects&)) {
    struct context {
        bool (*call)(objects&);
        objects of{};
        bool done = false;
    } made{call};
    const auto body = [](void* what) -> void* {
        auto& self = *static_cast<context*>(what);
        pthread_cancel(pthread_self());
        self.done = self.call(self.of);
        pthread_testcancel();
        return nullptr;
    };
    pthread_t thread;
    if (pthread_create(&thread, nullptr, body, &made) != 0) return 1;
    void* result = nullptr;
    pthread_join(thread, &result);
    waitpid(made.of.child, nullptr, 0);
    if (!made.done) return 2;
    return result == PTHREAD_CANCELED ? 0 : 3;
}

TEST(Cancellation, StaysPendingInCallsThatAreNotWaits) {
    for (const auto& [name, call] : calls) {
        EXPECT_EQ(support::ending_of_child([made = call] { return make_with_pending_cancellation(made); }),
                  "")
            << name;
    }
}

}  // namespace
#endif
