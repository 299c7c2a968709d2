// SPDX-License-Identifier: Apache-2.0
// The blocks of docs/guide.md, compiled and run. Dots on the page stand for the reader's code.
// tests/documents/document_blocks.py compares them with the page.
#include "task.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#if !defined(_WIN32) && !defined(__wasm__)
#include <csignal>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using tocsin::wait_status;

struct job {
    explicit job(int* runs) : runs_(runs) {}
    void run() { ++*runs_; }

private:
    int* runs_;
};

TEST(Guide, SetIntoAList) {
    struct reader {
        tocsin::auto_reset_event may_go;
    };
    std::vector<reader> readers(3);
    std::mutex mutex;

    tocsin::wake_list freed;
    {
        const std::lock_guard lock(mutex);
        for (reader& each : readers) each.may_go.set(freed);  // set, or handed over, when this returns
    }
    freed.wake();

    for (reader& each : readers) EXPECT_TRUE(each.may_go.try_wait());
}

TEST(Guide, Semaphores) {
    tocsin::manual_reset_event shutdown;
    std::stop_source stopping;
    const tocsin::stop_token token = stopping.get_token();
    const auto run = [&] {
        tocsin::counting_semaphore<8> connections(8);

        connections.acquire();  // one permit, or sleep
        if (connections.try_acquire_for(3, 50ms)) {
        }  // three at once
        if (connections.acquire(token) == wait_status::stopped) return;  // a stop token
        switch (tocsin::wait_any(shutdown, connections).index) {}  // takes a permit only if it returns 1

        EXPECT_TRUE(connections.try_acquire(2));
        EXPECT_FALSE(connections.try_acquire());
    };
    run();
}

TEST(Guide, Conditions) {
    tocsin::manual_reset_event shutdown;
    std::deque<int> jobs;
    const auto run = [&] {
        std::mutex mutex;
        tocsin::condition changed;  // guarded by the mutex: std::deque<job> jobs

        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !jobs.empty(); });
        while (jobs.empty()) {  // the same alongside an event, for a second at most
            const auto found = changed.wait_any(lock, {.until = 1s}, shutdown);
            if (found.index != 0) return;  // 0: notified; 1: shutdown
        }
        jobs.clear();
    };
    jobs.push_back(1);
    run();
    EXPECT_TRUE(jobs.empty());
}

TEST(Guide, Channels) {
    int runs = 0;
    job one(&runs);
    const auto keep = [](job&) { ADD_FAILURE(); };

    tocsin::channel<job> jobs(64);

    jobs.send(std::move(one));  // waits while the channel is full
    if (jobs.send_for(std::move(one), 50ms) != tocsin::channel_status::done) keep(one);
    jobs.close();                                    // from here on, nobody can send
    while (auto next = jobs.receive()) next->run();  // until nothing is left

    EXPECT_EQ(runs, 2);
}

TEST(Guide, ASelect) {
    int runs = 0;
    tocsin::channel<job> jobs(1);
    tocsin::channel<int> results(1);
    tocsin::manual_reset_event shutdown;
    jobs.send(job(&runs));
    int result = 3;

    auto next = jobs.receiving();
    auto report = results.sending(result);
    switch (tocsin::wait_any({.until = 1s}, next, report, shutdown).index) {
        case 0:
            if (next) next->run();
            break;      // without an item: jobs is closed and empty
        case 1: break;  // `result` was sent, or results is closed: report.status()
    }

    EXPECT_EQ(runs, 1);
}

TEST(Guide, LatchesAndBarriers) {
    std::stop_source stopping;
    const tocsin::stop_token stop = stopping.get_token();
    tocsin::manual_reset_event cancelled;
    constexpr int loaders = 0;
    constexpr int workers = 1;
    int front = 1;
    int back = 2;
    const auto run = [&] {
        tocsin::latch loaded(loaders);  // each loader calls loaded.count_down()
        if (loaded.wait_for(5s, stop) != tocsin::wait_status::signaled) return;

        tocsin::barrier step(workers, [&]() noexcept { std::swap(front, back); });
        const auto token = step.arrive();    // each worker, once its part is done
        tocsin::wait_any(token, cancelled);  // or step.arrive_and_wait()
    };
    run();
    EXPECT_EQ(front, 2);
}

TEST(Guide, Changes) {
    const std::uint16_t seen = 7;  // so the wait ends at once

    std::atomic<std::uint16_t> version{0};

    // waiter
    auto [status, now] = tocsin::wait_until_changed(&version, seen, 50ms);

    // changer
    tocsin::fetch_add(&version, 1, tocsin::wake_all);

    EXPECT_EQ(status, wait_status::signaled);
    EXPECT_EQ(now, 0);
    EXPECT_EQ(version, 1);
}

TEST(Guide, IdleConnections) {
    tocsin::wait_set set;
    const auto tag_of = [](const auto&) { return std::uint64_t{1}; };

    struct connection {
        tocsin::wait_timer idle;
    };
    connection one;

    set.add(one.idle, tag_of(one));  // once
    one.idle.reset(30s);             // whenever something arrives

    tocsin::ready_item ready[1];
    EXPECT_EQ(set.wait({.until = 0s}, ready).status, wait_status::timed_out);
}

#if !defined(_WIN32) && !defined(__wasm__)
TEST(Guide, SeveralThings) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const int socket = ends[0];
    tocsin::manual_reset_event shutdown;
    tocsin::auto_reset_event job;
    tocsin::auto_reset_event left_fork;
    tocsin::auto_reset_event right_fork;
    const tocsin::stop_token token;
    job.set();

    switch (tocsin::wait_any(shutdown, job, tocsin::readable(socket), tocsin::after(1s)).index) {}
    if (tocsin::wait_all({.until = 50ms, .stop = token}, left_fork, right_fork) == wait_status::signaled) {
    }

    EXPECT_FALSE(job.is_set());
    close(ends[0]);
    close(ends[1]);
}

using support::task;
using loop = tocsin::handler_thread;

tocsin::manual_reset_event shutdown;
tocsin::auto_reset_event job;

task serve(loop& own_loop, int connection) {
    for (;;) {
        const auto [status, index, found] =
            co_await tocsin::async_wait_any({.until = 5s}, shutdown, job, tocsin::readable(connection))
                .on(own_loop);
        if (index == 0) co_return;  // shutdown
    }
}

TEST(Guide, Coroutines) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    {
        loop own;
        job.set();
        const task serving = serve(own, ends[0]);
        shutdown.set();
        serving.join();
    }
    close(ends[0]);
    close(ends[1]);
}

TEST(Guide, Operations) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const int connection = ends[0];
    std::atomic<int> served{-1};
    tocsin::manual_reset_event called;
    const auto serve = [&](std::size_t index) {
        served = static_cast<int>(index);
        called.set();
    };
    shutdown.set();

    auto request = tocsin::any_operation([&](tocsin::any_result how) noexcept { serve(how.index); },
                                         {.until = 5s}, shutdown, tocsin::readable(connection));
    request.start();
    if (!request.cancel()) called.wait();  // it had ended: the function was or will be called with the result

    EXPECT_EQ(served, 0);
    shutdown.reset();
    close(ends[0]);
    close(ends[1]);
}

TEST(Guide, ProcessesAndSignals) {
    tocsin::handler_thread handler;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    try {
        tocsin::signal_source terminate(SIGTERM);
        tocsin::process_end ended(child);
        switch (tocsin::wait_any(terminate, ended, handler.ended()).index) {}
    } catch (const std::system_error& error) {  // this kernel or sandbox has no such descriptor
        EXPECT_TRUE(error.code() == std::errc::function_not_supported ||
                    error.code() == std::errc::operation_not_permitted);
    }
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
}
#endif

}  // namespace
