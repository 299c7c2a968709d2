// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait for events which other threads set, and that resume where Asio runs them: in the loop of one
// thread, which also serves timers, or on a strand of a thread pool. The program prints what it did, and fails if
// anything was lost.
#include "../support/task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

#include <asio.hpp>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;

// Lets an Asio executor resume a coroutine. Uses post() and never dispatch(), which may resume the coroutine inside the
// call: tocsin does not allow that.
template <class Executor>
class posted_to {
public:
    explicit posted_to(Executor executor) : executor_(std::move(executor)) {}
    void operator()(std::coroutine_handle<> who) const { asio::post(executor_, who); }

private:
    Executor executor_;
};

constexpr int jobs = 1'000;

struct numbers {
    int taken = 0;  // needs no lock: only one thread, or one strand, uses it
    int elsewhere = 0;
};

task consume(tocsin::auto_reset_event& job, tocsin::auto_reset_event& done, asio::io_context& loop,
             tocsin::manual_reset_event& closed, numbers& count) {
    const posted_to where(loop.get_executor());
    const auto loop_thread = std::this_thread::get_id();
    for (;;) {
        const auto first = co_await tocsin::async_wait_any(job, closed).on(where);
        if (first.index != 0) co_return;
        ++count.taken;
        if (std::this_thread::get_id() != loop_thread) ++count.elsewhere;
        done.set();
    }
}

// Returns what went wrong.
int in_the_loop_of_one_thread() {
    tocsin::auto_reset_event job;
    tocsin::auto_reset_event done;
    tocsin::manual_reset_event closed;
    numbers count;
    int ticks = 0;
    asio::io_context loop;
    auto keep_running = asio::make_work_guard(loop);
    asio::steady_timer timer(loop);
    const auto tick = [&](auto& again) -> void {
        timer.expires_after(1ms);
        timer.async_wait([&, again](const asio::error_code& error) {
            if (!error && ++ticks != 10) again(again);
        });
    };
    tick(tick);
    std::jthread producer([&] {
        for (int i = 0; i != jobs; ++i) {
            job.set();
            done.wait();
        }
        closed.set();
        keep_running.reset();
    });
    consume(job, done, loop, closed, count);
    loop.run();
    std::printf("loop: %d jobs, %d of them elsewhere; %d ticks\n", count.taken, count.elsewhere, ticks);
    return count.taken == jobs && count.elsewhere == 0 && ticks == 10 ? 0 : 1;
}

task pass(tocsin::manual_reset_event& gate, tocsin::source second, asio::any_io_executor strand,
          numbers& count, tocsin::auto_reset_event& all_passed, int of) {
    const posted_to where(strand);
    (void)co_await tocsin::async_wait_all(gate, second).on(where);
    const auto late = co_await tocsin::async_wait_any(tocsin::after(1ms)).on(where);
    if (late.status == tocsin::wait_status::signaled && ++count.taken == of) all_passed.set();
}

int on_a_strand_of_a_pool() {
    constexpr int coroutines = 500;
    tocsin::manual_reset_event gate;
    tocsin::manual_reset_event second;
    tocsin::auto_reset_event all_passed;
    numbers count;
    asio::thread_pool pool(2);
    const auto strand = asio::make_strand(pool);
    for (int i = 0; i != coroutines; ++i) pass(gate, second, strand, count, all_passed, coroutines);
    second.set();
    gate.set();
    all_passed.wait();
    pool.join();
    std::printf("strand: %d coroutines passed\n", count.taken);
    return count.taken == coroutines ? 0 : 1;
}

}  // namespace

int main() { return in_the_loop_of_one_thread() + on_a_strand_of_a_pool(); }
