// SPDX-License-Identifier: Apache-2.0
// Waits in a main context of GLib: the context calls a function each time a wait for the sources has ended.
//
//     const guint jobs = tocsin::glib::watch(context, [&](tocsin::any_result how) { return serve(how.index); },
//                                            shutdown, job);
//     g_source_remove(jobs);
//
// The sources are those of wait_any() (wait.hpp), with optional limits in front. The sources, and a time point of a
// clock of your own, must outlive the watch. When the function returns true, the next wait begins. After false, or once
// the GSource is destroyed, the watch ends and frees its memory. All waits of a watch have the same limits. So once the
// deadline has passed, each further wait ends at once.
//
// By itself, the context does not serve the deadlines and descriptors of these waits. The driver that you give to the
// watch does (driver.hpp), or else the default driver. If there is neither, background threads of the library do. The
// driver must outlive the watch:
//
//     tocsin::glib::watch(tocsin::glib::on(context).by(driver), serve, {.until = 5s}, job);
//
// Outside the context, the thread that ends a wait only calls g_source_set_ready_time(). If the GSource is destroyed at
// that moment, this thread, or the thread in watch(), may also free the watch with its function. If the program gives
// up its last reference to the context at that moment, newer versions of GLib (seen with 2.90) may end the context in
// this thread, inside g_source_set_ready_time(), with all that the context has. The function may use
// the context, and may destroy the GSource. An exception that leaves the function, or that the start of a further wait
// throws, ends the program.
#pragma once

#include <tocsin/detail/chosen_driver.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <mutex>
#include <utility>

#include <glib.h>

namespace tocsin::glib {
namespace detail {

// A watch belongs to its GSource, to open() while open() runs, and to its operation while the operation waits. The last
// of these owners frees the watch. `mutex_` delays the destruction of the GSource, so that neither the GSource nor its
// context is freed during g_source_set_ready_time(). Newer versions of GLib (seen with 2.90, not with 2.84) refer to
// the context during this call. If theirs is the last reference, they end the context there, and so destroyed() runs
// inside end(), in the same thread. So `mutex_` can be locked again, and end() refers to the GSource.
class watch_base {
public:
    watch_base() noexcept = default;
    watch_base(const watch_base&) = delete;
    watch_base& operator=(const watch_base&) = delete;
    virtual ~watch_base() = default;

    guint open(GMainContext* context) {
        static GSourceFuncs functions{nullptr, nullptr, dispatch, nullptr, nullptr, nullptr};
        struct owner {
            ~owner() {
                g_source_unref(self.source_);
                self.drop();
            }
            watch_base& self;
        } const owner{*this};
        source_ = g_source_new(&functions, sizeof(GSource));
        g_source_set_callback(source_, [](gpointer) -> gboolean { return G_SOURCE_REMOVE; }, this, destroyed);
        const guint id = g_source_attach(source_, context);
        TOCSIN_TRY { begin(); }
        TOCSIN_CATCH(...) {
            g_source_destroy(source_);
            TOCSIN_RETHROW;
        }
        return id;
    }

protected:
    void end(const any_result& how) noexcept {
        {
            const std::lock_guard lock(mutex_);
            how_ = how;
            if (!is_destroyed_) {
                g_source_ref(source_);
                g_source_set_ready_time(source_, 0);
                g_source_unref(source_);
            }
        }
        drop();
    }

private:
    virtual bool call(const any_result& how) = 0;
    virtual void start() = 0;
    virtual void cancel() noexcept = 0;

    void begin() {
        ++owners_;
        TOCSIN_TRY { start(); }
        TOCSIN_CATCH(...) {
            --owners_;
            TOCSIN_RETHROW;
        }
    }
    void drop() noexcept {
        if (--owners_ == 0) delete this;
    }
    static gboolean dispatch(GSource* source, GSourceFunc, gpointer data) noexcept {
        auto& self = *static_cast<watch_base*>(data);
        g_source_set_ready_time(source, -1);
        std::unique_lock lock(self.mutex_);
        const any_result how = self.how_;
        lock.unlock();
        if (!self.call(how)) return G_SOURCE_REMOVE;
        if (!g_source_is_destroyed(source)) self.begin();
        return G_SOURCE_CONTINUE;
    }
    // Called once, after the last dispatch().
    static void destroyed(gpointer data) noexcept {
        auto& self = *static_cast<watch_base*>(data);
        {
            const std::lock_guard lock(self.mutex_);
            self.is_destroyed_ = true;
        }
        self.cancel();
        self.drop();
    }

    GSource* source_ = nullptr;
    std::recursive_mutex mutex_;
    any_result how_{wait_status::signaled};
    bool is_destroyed_ = false;
    std::atomic<int> owners_{2};
};

template <class Function, class... Arguments>
class watch final : public watch_base {
public:
    watch(const tocsin::detail::chosen_driver& by, Function&& function, Arguments&... arguments)
        : function_(std::move(function)), operation_(any_operation(ended{this}, arguments...)) {
        by.serve(operation_);
    }

private:
    struct ended {
        void operator()(const any_result& how) const noexcept { of->end(how); }
        watch* of;
    };
    bool call(const any_result& how) override { return function_(how); }
    void start() override { operation_.start(); }
    void cancel() noexcept override { (void)operation_.cancel(); }

    Function function_;
    decltype(any_operation(std::declval<ended>(), std::declval<Arguments&>()...)) operation_;
};

using loop_and_driver = tocsin::detail::loop_and_driver<GMainContext*>;

}  // namespace detail

// The context, for a watch that gets a driver: on(context).by(driver).
inline detail::loop_and_driver on(GMainContext* context) noexcept { return {context}; }

// Begins a watch in the context (null: the default one), in any thread. The context is a GMainContext*, or what on()
// returns. Returns the number of its GSource. It allocates the watch and the GSource, and throws std::bad_alloc and
// what an operation's start() throws (operation.hpp).
template <class Function, class... Sources>
guint watch(const detail::loop_and_driver& where, Function function, const limits& how, Sources&&... from) {
    static_assert(tocsin::detail::are_sources<tocsin::detail::lists::refused, Sources...>());
    return (new detail::watch<Function, const limits, Sources...>(where.served_by(), std::move(function), how,
                                                                  from...))
        ->open(where.loop());
}
template <class Function, class... Sources>
    requires tocsin::detail::no_limits_first<Sources...>
guint watch(const detail::loop_and_driver& where, Function function, Sources&&... from) {
    static_assert(tocsin::detail::are_sources<tocsin::detail::lists::refused, Sources...>());
    return (new detail::watch<Function, Sources...>(where.served_by(), std::move(function), from...))
        ->open(where.loop());
}

}  // namespace tocsin::glib
