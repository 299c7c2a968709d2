// SPDX-License-Identifier: Apache-2.0
// <tocsin/glib.hpp>
#include "clocks.hpp"
#include "facts.hpp"
#include "sanitizer.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/glib.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <glib.h>

namespace {

// Called once, inside the next g_source_set_ready_time(), which then gives up a reference to the context.
std::function<void()> inside_ready_time;

}  // namespace

// GLib's function, as it is in GLib 2.90, with any GLib: its reference to the context may be the last one.
extern "C" void g_source_set_ready_time(GSource* source, gint64 when) {
    static const auto glibs =
        reinterpret_cast<decltype(&g_source_set_ready_time)>(dlsym(RTLD_NEXT, "g_source_set_ready_time"));
    if (!inside_ready_time) return glibs(source, when);
    GMainContext* const context = g_main_context_ref(g_source_get_context(source));
    glibs(source, when);
    std::exchange(inside_ready_time, nullptr)();
    g_main_context_unref(context);
}

namespace {

using namespace std::chrono_literals;
using support::hand_clock;
using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

class context {
public:
    context() = default;
    context(const context&) = delete;
    ~context() { g_main_context_unref(context_); }
    template <class Fact>
    void run_until(Fact holds) {
        while (!holds()) g_main_context_iteration(context_, TRUE);
    }
    void run_pending() {
        while (g_main_context_iteration(context_, FALSE) != FALSE) {
        }
    }
    GSource* find(guint id) { return g_main_context_find_source_by_id(context_, id); }
    GMainContext* get() { return context_; }

private:
    GMainContext* context_ = g_main_context_new();
};

TEST(GlibWatch, CallsTheFunctionInTheContextForEachSet) {
    context context;
    auto_reset_event job;
    auto_reset_event done;
    manual_reset_event closed;
    int taken = 0;
    bool over = false;
    const guint id = tocsin::glib::watch(
        context.get(),
        [&, here = std::this_thread::get_id()](any_result how) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            over = how.index != 0;
            if (over) return false;
            ++taken;
            done.set();
            return true;
        },
        job, closed);
    std::thread producer([&] {
        for (int i = 0; i != 100; ++i) {
            job.set();
            done.wait();
        }
        closed.set();
    });
    context.run_until([&] { return over; });
    producer.join();
    EXPECT_EQ(taken, 100);
    EXPECT_EQ(context.find(id), nullptr);
}

TEST(GlibWatch, NeverCallsTheFunctionInsideWatch) {
    context context;
    manual_reset_event event(true);
    int calls = 0;
    tocsin::glib::watch(context.get(), [&](any_result) { return ++calls != 10; }, event);
    EXPECT_EQ(calls, 0);
    context.run_pending();
    EXPECT_EQ(calls, 10) << "a source that stays ready is found again and again";
}

TEST(GlibWatch, TellsTheDeadline) {
    context context;
    auto_reset_event event;
    any_result found{wait_status::signaled};
    tocsin::glib::watch(
        context.get(), [&](any_result how) { return found = how, false; }, {.until = 1ms}, event);
    context.run_until([&] { return found.status == wait_status::timed_out; });
}

TEST(GlibWatch, IsServedByItsDriver) {
    context context;
    tocsin::driver driver;
    auto_reset_event event;
    any_result found{wait_status::signaled};
    const auto due = hand_clock::now() + 2ms;
    tocsin::glib::watch(
        tocsin::glib::on(context.get()).by(driver), [&](any_result how) { return found = how, false; },
        {.until = due}, event);
    EXPECT_FALSE(driver.next_deadline().is_never());
    hand_clock::set(due);
    while (driver.run_due() == 0 && !driver.next_deadline().is_never()) std::this_thread::yield();
    context.run_until([&] { return found.status == wait_status::timed_out; });
}

TEST(GlibWatch, ItsDriverServesEachWait) {
    context context;
    tocsin::driver driver;
    auto_reset_event event;
    int calls = 0;
    const guint id = tocsin::glib::watch(
        tocsin::glib::on(context.get()).by(driver), [&](any_result) { return ++calls != 0; }, event,
        tocsin::after(1h));
    for (int i = 1; i <= 2; ++i) {
        EXPECT_FALSE(driver.next_deadline().is_never());
        event.set();
        EXPECT_TRUE(driver.next_deadline().is_never());
        context.run_until([&] { return calls == i; });
    }
    g_source_destroy(context.find(id));
}

TEST(GlibWatch, EndsWhenItsSourceIsDestroyed) {
    context context;
    auto_reset_event event;
    auto owned = std::make_shared<int>(0);
    const guint id = tocsin::glib::watch(context.get(), [owned](any_result) { return true; }, event);
    g_source_destroy(context.find(id));
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TEST(GlibWatch, MayBeDestroyedByItsFunction) {
    context context;
    manual_reset_event event(true);
    auto owned = std::make_shared<int>(0);
    int calls = 0;
    guint id = 0;
    id = tocsin::glib::watch(
        context.get(),
        [&, owned](any_result) {
            ++calls;
            g_source_destroy(context.find(id));
            return true;
        },
        event);
    context.run_pending();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(owned.use_count(), 1);
}

TEST(GlibWatch, ThrowsIfTheWaitCannotBegin) {
    context context;
    tocsin::source empty;
    auto owned = std::make_shared<int>(0);
    EXPECT_THROW(tocsin::glib::watch(
                     context.get(), [owned](any_result) { return true; }, empty),
                 std::invalid_argument);
    EXPECT_EQ(owned.use_count(), 1);
}

// A set meets the end of the context.
TEST(GlibWatch, EndsWithItsContextAlsoIfItsSourceBecomesReadyThen) {
    const int rounds = support::rounds(2'000, 200);
    for (int i = 0; i != rounds; ++i) {
        auto_reset_event event;
        auto owned = std::make_shared<int>(0);
        std::atomic<bool> go{false};
        std::thread setter;
        {
            context context;
            tocsin::glib::watch(context.get(), [owned](any_result) { return true; }, event);
            setter = std::thread([&] {
                while (!go.load()) {
                }
                event.set();
            });
            go.store(true);
            if (i % 2 == 0) std::this_thread::yield();
        }
        setter.join();
        ASSERT_EQ(owned.use_count(), 1) << "round " << i;
    }
}

TEST(GlibWatch, EndsWithItsContextInsideTheCallThatMakesItsSourceReady) {
    auto_reset_event event;
    auto_reset_event other;
    auto owned = std::make_shared<int>(0);
    auto whole = std::make_unique<context>();
    for (auto* const each : {&event, &other})
        tocsin::glib::watch(whole->get(), [owned](any_result) { return true; }, *each);
    inside_ready_time = [&] { whole.reset(); };
    event.set();
    EXPECT_EQ(whole, nullptr);
    EXPECT_EQ(owned.use_count(), 1);
    other.set();
    EXPECT_TRUE(other.try_wait());  // nobody waits any more
}

}  // namespace
