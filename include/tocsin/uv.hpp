// SPDX-License-Identifier: Apache-2.0
// Waits in a loop of libuv: the loop's thread calls a function each time a wait for the sources has ended.
//
//     uv_handle_t* const jobs = tocsin::uv::watch(loop, [&](tocsin::any_result how) { return serve(how.index); },
//                                                 shutdown, job);
//     tocsin::uv::unwatch(jobs);
//
// The sources are those of wait_any() (wait.hpp), with optional limits in front. The sources, and a time point of a
// clock of your own, must outlive the watch. When the function returns true, the next wait begins. After false, the
// watch ends and frees its memory. All waits of a watch have the same limits. So once the deadline has passed, each
// further wait ends at once. For a time-out of each wait, give the watch an idle time in place of limits: a wait that
// nothing ends for so long ends with `timed_out`, and the next begins with the whole idle time.
//
//     tocsin::uv::watch(loop, serve_or_tidy_up, tocsin::uv::idle(500ms), job);
//
// By itself, the loop does not serve the deadlines and descriptors of these waits. A driver does (driver.hpp): the one
// that you give to the watch, or else the default driver. If there is neither, background threads of the library do.
// The driver must outlive the watch. To give a watch a driver:
//
//     tocsin::uv::watch(tocsin::uv::on(loop).by(driver), serve, {.until = 5s}, job);
//
// Outside the loop, only one thing happens: the thread that ends a wait calls uv_async_send(). The function may use the
// loop, and may call unwatch(). An exception that leaves it, or that the start of a further wait throws, ends the
// program. Like other handles, an active watch keeps uv_run() from returning; uv_unref() changes that.
#pragma once

#include <tocsin/detail/chosen_driver.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <uv.h>

namespace tocsin::uv {
namespace detail {

// The watch is freed once libuv has closed the handle. On Unix, closing waits for a thread that is inside
// uv_async_send(). libuv's documentation does not promise this wait, but its code has it (uv__async_spin() in libuv
// 1.44.2).
class watch_base {
public:
    watch_base() noexcept { async_.data = this; }
    watch_base(const watch_base&) = delete;
    watch_base& operator=(const watch_base&) = delete;
    virtual ~watch_base() = default;

    void open(uv_loop_t* loop) {
        const int error =
            uv_async_init(loop, &async_, [](uv_async_t* of) noexcept { of_handle(of).serve(); });
        if (error != 0) tocsin::detail::throw_or_die(std::system_error(-error, std::generic_category()));
        async_.data = this;
    }
    void close() noexcept {
        uv_close(handle(), [](uv_handle_t* of) { delete &of_handle(of); });
    }
    // If a wait is pending, cancel() ends it, and the loop then calls serve().
    void stop() noexcept {
        is_stopped_ = true;
        cancel();
    }
    uv_handle_t* handle() noexcept { return reinterpret_cast<uv_handle_t*>(&async_); }
    template <class Handle>
    static watch_base& of_handle(Handle* of) noexcept {
        return *static_cast<watch_base*>(of->data);
    }

    virtual void begin() = 0;

protected:
    void end(const any_result& how) noexcept {
        how_ = how;
        uv_async_send(&async_);
    }

private:
    virtual bool call(const any_result& how) = 0;
    virtual void cancel() noexcept = 0;
    void serve() {
        if (!is_stopped_ && call(how_) && !is_stopped_) return begin();
        close();
    }

    uv_async_t async_;
    any_result how_{wait_status::signaled};
    bool is_stopped_ = false;
};

template <class Function, class... Arguments>
class watch : public watch_base {
public:
    watch(Function&& function, Arguments&... arguments)
        : function_(std::move(function)), operation_(any_operation(ended{this}, arguments...)) {}
    void serve_by(const tocsin::detail::chosen_driver& which) noexcept { which.serve(operation_); }
    void begin() override { operation_.start(); }

protected:
    auto& operation() noexcept { return operation_; }

private:
    struct ended {
        void operator()(const any_result& how) const noexcept { of->end(how); }
        watch* of;
    };
    bool call(const any_result& how) override { return function_(how); }
    void cancel() noexcept override { (void)operation_.cancel(); }

    Function function_;
    decltype(any_operation(std::declval<ended>(), std::declval<Arguments&>()...)) operation_;
};

// Each of its waits has a deadline of its own.
template <class Function, class... Arguments>
class idle_watch final : public watch<Function, Arguments...> {
public:
    idle_watch(std::chrono::nanoseconds longest, Function&& function, Arguments&... arguments)
        : watch<Function, Arguments...>(std::move(function), arguments...), longest_(longest) {}
    void begin() override { this->operation().start(limits{.until = longest_}); }

private:
    const std::chrono::nanoseconds longest_;
};

using loop_and_driver = tocsin::detail::loop_and_driver<uv_loop_t*>;

template <class Watch>
uv_handle_t* start(const loop_and_driver& where, std::unique_ptr<Watch> made) {
    made->serve_by(where.served_by());
    made->open(where.loop());
    watch_base& opened = *made.release();
    TOCSIN_TRY { opened.begin(); }
    TOCSIN_CATCH(...) {
        opened.close();
        TOCSIN_RETHROW;
    }
    return opened.handle();
}

}  // namespace detail

// The loop, for a watch that gets a driver: on(loop).by(driver).
inline detail::loop_and_driver on(uv_loop_t* loop) noexcept { return {loop}; }

// For how long a wait of a watch may last. At most some 292 years; zero or less ends each wait at once.
struct idle {
    explicit idle(std::chrono::nanoseconds longest_wait) noexcept : longest(longest_wait) {}
    std::chrono::nanoseconds longest;  // how long each wait may last
};

// Begins a watch in the loop: a uv_loop_t*, or what on() returns. Call it in the loop's thread. It allocates one block
// of memory, and throws std::bad_alloc, std::system_error, and what an operation's start() throws (operation.hpp).
template <class Function, class... Sources>
uv_handle_t* watch(const detail::loop_and_driver& where, Function function, const limits& how,
                   Sources&&... from) {
    static_assert(tocsin::detail::are_sources<tocsin::detail::lists::refused, Sources...>());
    return detail::start(where, std::make_unique<detail::watch<Function, const limits, Sources...>>(
                                    std::move(function), how, from...));
}
template <class Function, class... Sources>
uv_handle_t* watch(const detail::loop_and_driver& where, Function function, const idle& each,
                   Sources&&... from) {
    static_assert(tocsin::detail::are_sources<tocsin::detail::lists::refused, Sources...>());
    return detail::start(where,
                         std::make_unique<detail::idle_watch<Function, const limits, Sources...>>(
                             each.longest, std::move(function), limits{.until = each.longest}, from...));
}
template <class Function, class... Sources>
    requires tocsin::detail::no_limits_first<Sources...> &&
             (!std::is_same_v<std::remove_cvref_t<Sources>, idle> && ...)
uv_handle_t* watch(const detail::loop_and_driver& where, Function function, Sources&&... from) {
    static_assert(tocsin::detail::are_sources<tocsin::detail::lists::refused, Sources...>());
    return detail::start(where,
                         std::make_unique<detail::watch<Function, Sources...>>(std::move(function), from...));
}

// Ends a watch that has not ended yet. Its function is not called any more. Call unwatch() in the loop's thread.
inline void unwatch(uv_handle_t* watched) noexcept { detail::watch_base::of_handle(watched).stop(); }

}  // namespace tocsin::uv
