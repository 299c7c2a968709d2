// SPDX-License-Identifier: Apache-2.0
// Coroutines that share data without a lock: all of them resume in the handler_thread that owns the data, whatever
// thread sets what they wait for. Another thread closes sessions that have been idle for too long. It has a timer for
// each session in a wait_set. The program prints what it did, and fails if anything was lost.
#include "../support/task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/wait_set.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

constexpr int sessions = 1'000;
constexpr int requests = 5;  // of each session; then the session is idle

struct session {
    tocsin::auto_reset_event request;
    tocsin::auto_reset_event served;
    tocsin::manual_reset_event closed;
    tocsin::wait_timer idle;
};

// Needs no lock, because only the owner thread touches it.
struct totals {
    int served = 0;
    int closed = 0;
    int elsewhere = 0;
};

task serve(session& one, totals& all, tocsin::handler_thread& owner) {
    for (;;) {
        const auto next = co_await tocsin::async_wait_any(one.request, one.closed).on(owner);
        if (!owner.is_this_thread()) ++all.elsewhere;
        if (next.index == 1) break;
        one.idle.reset(30s);
        ++all.served;
        one.served.set();
    }
    ++all.closed;
}

// Closes each session when its timer is due.
void close_idle_sessions(tocsin::wait_set& timers, std::span<session> all) {
    tocsin::ready_item due[64];
    for (std::size_t closed = 0; closed != all.size();) {
        const auto found = timers.wait(due);
        for (const auto& each : std::span(due).first(found.count)) all[each.tag].closed.set();
        closed += found.count;
    }
}

}  // namespace

int main() {
    totals all;
    tocsin::handler_thread owner;
    std::vector<session> table(sessions);
    tocsin::wait_set timers;
    std::vector<task> tasks;
    for (std::size_t i = 0; i != table.size(); ++i) {
        timers.add(table[i].idle, i);
        tasks.push_back(serve(table[i], all, owner));
    }
    std::jthread closer([&] { close_idle_sessions(timers, table); });
    for (int i = 0; i != requests; ++i) {
        for (session& each : table) each.request.set();
        for (session& each : table) each.served.wait();
    }
    for (session& each : table) each.idle.reset(10ms);  // 30 s are too long for an example
    for (const task& each : tasks) each.wait();
    closer.join();
    owner.join();
    std::printf("%d requests served, %d sessions closed; %d times elsewhere\n", all.served, all.closed,
                all.elsewhere);
    return all.served == sessions * requests && all.closed == sessions && all.elsewhere == 0 ? 0 : 1;
}
