// SPDX-License-Identifier: Apache-2.0
// One thread looks at all parked waits from time to time, for all watchdogs.
//
// Every wait notes when it was parked. That is all that a wait does for watchdogs. After a look at a time t, the next
// look is due when the oldest wait that is not reported yet becomes too old, but not before t + pause(). A wait that
// parks after t becomes too old after t + `longest`. So the next look comes at t + `longest` at the latest (or a
// millisecond after t, if that is later).
//
// State, under `lock`
//   all      the watchdogs.
//   busy     the watchdog that the thread works for at this moment, or null. Until the thread has ended this work, the
//            watchdog stays in `all`, and only the thread touches the watchdog's members. (Exceptions: the links of the
//            list, and `process`, which never changes.)
//   changed  counts the changes of `all` and the ends of `busy`; the thread and destructors sleep on it.
// A watchdog remembers which waits it has reported, by thread, address and start. A thread gives each of its waits
// another start (wait_origin.hpp), even if the clock has not moved on. It forgets a wait that it no longer
// sees. A look that can't allocate memory reports nothing and forgets nothing. The thread then looks again after
// pause().
//
// Fork (core/sync/fork.hpp): the child begins without watchdogs and without a thread. If the child destroys a watchdog
// of the parent, it only frees the memory, except that of `reported`, which may be half changed.
//
// Checked by: tests/unit/watchdog_test.cpp, tests/internal/out_of_memory_test.cpp.
#include "core/async/background.hpp"
#include "core/lot/lot.hpp"
#include "core/sync/futex_lock.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/watchdog.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace tocsin {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

struct detail::watchdog_state : detail::list_links<detail::watchdog_state> {
    using seen = std::tuple<std::uint64_t, const void*, steady_clock::time_point>;

    steady_clock::time_point look(const std::vector<parked_wait>& waits, steady_clock::time_point now);
    // The shortest time between two looks, unless a watchdog is added or removed meanwhile.
    nanoseconds pause() const noexcept {
        return std::max<nanoseconds>(longest / 16, std::chrono::milliseconds(1));
    }

    nanoseconds longest;
    std::function<void(const parked_wait&)> report;
    std::vector<seen> reported;
    core::process_stamp process;
};

namespace {

steady_clock::time_point later(steady_clock::time_point from, nanoseconds by) noexcept {
    return by >= steady_clock::time_point::max() - from ? steady_clock::time_point::max() : from + by;
}

}  // namespace

// Reports the waits that have become too old. Returns when to look again.
steady_clock::time_point detail::watchdog_state::look(const std::vector<parked_wait>& waits,
                                                      steady_clock::time_point now) {
    std::vector<seen> still;
    TOCSIN_TRY { still.reserve(waits.size()); }
    TOCSIN_CATCH(...) { return later(now, pause()); }
    steady_clock::time_point next = later(now, longest);
    for (const parked_wait& each : waits) {
        const seen key{each.thread, each.address, each.since};
        if (now - each.since <= longest) {
            next = std::min(next, later(later(each.since, longest), nanoseconds(1)));
            continue;
        }
        still.push_back(key);
        if (std::ranges::find(reported, key) == reported.end()) report(each);
    }
    reported = std::move(still);
    return std::max(next, later(now, pause()));
}

struct watchdogs {
    using state = detail::watchdog_state;

    void run() noexcept;
    void add(state& joining);
    void remove(state& leaving) noexcept;
    void change() noexcept {
        changed.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock
        platform::futex::wake_all(&changed);
    }

    core::futex_lock lock;
    detail::intrusive_list<state> all;
    detail::plain<state*> busy{nullptr};
    detail::plain<std::uint64_t> thread{0};  // the number of the thread that runs
    platform::futex_word changed{0};
    core::background_thread background;
};

namespace {

constinit detail::never_destroyed<watchdogs> the_watchdogs;
const core::in_child renews_watchdogs(core::child_duty::watchdogs, core::renew<the_watchdogs>);

std::optional<std::vector<parked_wait>> waits_if_memory_allows() noexcept {
    TOCSIN_TRY { return parked_waits(); }
    TOCSIN_CATCH(...) { return std::nullopt; }
}

}  // namespace

void watchdogs::add(state& joining) {
    core::background_thread::prepare();
    const std::lock_guard held(lock);
    background.start([]() noexcept { the_watchdogs.it.run(); },
                     "tocsin::report_waits_longer_than: can't start the thread of the watchdogs");
    all.append(joining);
    change();
}

void watchdogs::remove(state& leaving) noexcept {
    for (;;) {
        std::uint32_t seen;
        {
            const std::lock_guard held(lock);
            if (busy != &leaving) {
                all.remove(leaving);
                return change();
            }
            if (thread == platform::thread_number())
                platform::die(
                    "tocsin: wait_watchdog destroyed inside its own report, which it would wait for\n");
            seen = changed.load(std::memory_order_relaxed);  // no order: under the lock
        }
        (void)platform::futex::wait(changed, seen, deadline::never());
    }
}

void watchdogs::run() noexcept {
    for (;;) {
        const auto waits = waits_if_memory_allows();
        const auto now = steady_clock::now();
        auto next = steady_clock::time_point::max();
        std::uint32_t seen;
        {
            std::unique_lock held(lock);
            thread = platform::thread_number();
            for (state* each = all.first(); each != nullptr; each = all.next(*each)) {
                busy = each;
                held.unlock();
                {
                    const platform::with_signals_of as_maker(background.makers_signals());
                    next = std::min(next, waits ? each->look(*waits, now) : later(now, each->pause()));
                }
                held.lock();
                busy = nullptr;
                change();
            }
            seen = changed.load(std::memory_order_relaxed);  // no order: under the lock
        }
        (void)platform::futex::wait(
            changed, seen, next == steady_clock::time_point::max() ? deadline::never() : deadline(next));
    }
}

void detail::watchdog_deleter::operator()(watchdog_state* gone) const noexcept {
    if (gone->process.is_of_this_process()) {
        the_watchdogs.it.remove(*gone);
    } else {
        new (&gone->reported)
            std::vector<watchdog_state::seen>;  // the parent's thread may have been changing it
    }
    delete gone;
}

wait_watchdog report_waits_longer_than(nanoseconds longest, std::function<void(const parked_wait&)> report) {
    if (!report) {
        detail::throw_or_die(
            std::invalid_argument("tocsin::report_waits_longer_than: the function is empty"));
    }
    std::unique_ptr<detail::watchdog_state> made(new detail::watchdog_state);
    made->longest = std::max(longest, nanoseconds(0));
    made->report = std::move(report);
    the_watchdogs.it.add(*made);
    return wait_watchdog(wait_watchdog::state(made.release()));
}

}  // namespace tocsin
