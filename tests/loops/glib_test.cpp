// SPDX-License-Identifier: Apache-2.0
// <tocsin/glib.hpp>
#include "sanitizer.hpp"
#include "watch_contract.hpp"

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

class context {
public:
    context() = default;
    context(const context&) = delete;
    ~context() { g_main_context_unref(context_); }
    template <class Fact>
    void run_until(Fact holds) {
        while (!holds()) g_main_context_iteration(context_, TRUE);
    }
    void run() {
        while (g_main_context_iteration(context_, FALSE) != FALSE) {
        }
    }
    GMainContext* get() { return context_; }

    using id = guint;
    template <class... Arguments>
    id watch(Arguments&&... given) {
        return tocsin::glib::watch(context_, std::forward<Arguments>(given)...);
    }
    template <class... Arguments>
    id watch_by(tocsin::driver& by, Arguments&&... given) {
        return tocsin::glib::watch(tocsin::glib::on(context_).by(by), std::forward<Arguments>(given)...);
    }
    void unwatch(id which) { g_source_destroy(g_main_context_find_source_by_id(context_, which)); }
    bool is_watched(id which) { return g_main_context_find_source_by_id(context_, which) != nullptr; }

private:
    GMainContext* context_ = g_main_context_new();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Glib, Watch, context);

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
