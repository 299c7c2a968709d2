// SPDX-License-Identifier: Apache-2.0
// Loops that serve a driver (driver.hpp): over poll(), epoll, libuv, GLib and Asio, and one that never sleeps. All have
// the same functions:
//   driver()    the driver, whose `changed` ends the loop's sleep
//   run_once()  one round of the loop: sleeps until there is something to do, and does it
//   forget()    makes the loop watch what the driver now wants, and nothing else
//   wake()      ends the loop's sleep; any thread may call it
// Those of other libraries are here if TOCSIN_TEST_LIBUV and so on say so.
#pragma once

#include <tocsin/driver.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#if defined(__linux__)
#include <tocsin/epoll.hpp>

#include <sys/epoll.h>
#endif
#if defined(TOCSIN_TEST_LIBUV)
#include <uv.h>
#endif
#if defined(TOCSIN_TEST_GLIB)
#include <glib-unix.h>
#endif
#if defined(TOCSIN_TEST_ASIO)
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#endif

namespace driven {

using tocsin::readiness;
using watch = tocsin::driver::watch;
using watch_id = tocsin::driver::watch_id;

// What a loop calls a readiness.
struct name_of {
    readiness ours;
    int theirs;
};

template <std::size_t N>
int to_theirs(const name_of (&names)[N], readiness asked) {
    int result = 0;
    for (const name_of& each : names) result |= has(asked, each.ours) ? each.theirs : 0;
    return result;
}
template <std::size_t N>
readiness to_ours(const name_of (&names)[N], int found) {
    auto result = readiness::none;
    for (const name_of& each : names) result = (found & each.theirs) != 0 ? result | each.ours : result;
    return result;
}

inline void require(bool condition, const char* what) {
    if (condition) return;
    std::perror(what);
    std::abort();
}

// A pipe that ends the sleep of a loop.
class wake_pipe {
public:
    wake_pipe() {
        require(::pipe(ends_) == 0, "pipe");
        for (const int end : ends_) ::fcntl(end, F_SETFL, O_NONBLOCK);
    }
    ~wake_pipe() {
        for (const int end : ends_) ::close(end);
    }
    wake_pipe(const wake_pipe&) = delete;
    wake_pipe& operator=(const wake_pipe&) = delete;

    int descriptor() const { return ends_[0]; }
    void operator()() const noexcept {
        const char byte = 0;
        (void)!::write(ends_[1], &byte, 1);
    }
    void drain() const {
        char bytes[64];
        while (::read(ends_[0], bytes, sizeof bytes) > 0) {
        }
    }

private:
    int ends_[2];
};

// The descriptors that the system refuses to watch. A loop reports them all the same, and does not sleep before it has.
class refused_list {
public:
    bool empty() const { return all_.empty(); }
    // `error` is the system's number. A regular file, for instance, is always ready.
    void add(watch which, int error) {
        all_[which.descriptor] = {which.id, error == EPERM ? which.asked : readiness::invalid};
    }
    void remove(int descriptor) { all_.erase(descriptor); }
    void report_to(tocsin::driver& driver) {
        for (const auto& [descriptor, each] : std::exchange(all_, {})) driver.notify(each.id, each.found);
    }

private:
    struct refused {
        watch_id id;
        readiness found;
    };
    std::map<int, refused> all_;
};

#if defined(POLLRDHUP)
inline constexpr int polled_hang_up = POLLHUP | POLLRDHUP;
#else
inline constexpr int polled_hang_up = POLLHUP;
#endif
inline constexpr name_of polled_names[] = {
    {readiness::readable, POLLIN},        {readiness::writable, POLLOUT}, {readiness::urgent, POLLPRI},
    {readiness::hang_up, polled_hang_up}, {readiness::error, POLLERR},    {readiness::invalid, POLLNVAL},
};

// What a loop over poll() watches.
class polled_list {
public:
    void update(tocsin::driver& driver) {
        driver.update([&](watch each) {
            if (each.asked == readiness::none) {
                all_.erase(each.descriptor);
            } else {
                all_[each.descriptor] = {each.id, static_cast<short>(to_theirs(polled_names, each.asked))};
            }
        });
    }
    // Sleeps until a descriptor is ready, the timeout has passed, or `bell` can be read.
    std::vector<pollfd> poll(int timeout, int bell) const {
        std::vector<pollfd> found{{bell, POLLIN, 0}};
        for (const auto& [descriptor, each] : all_) found.push_back({descriptor, each.events, 0});
        (void)::poll(found.data(), static_cast<nfds_t>(found.size()), timeout);
        found.erase(found.begin());
        return found;
    }
    void report(const std::vector<pollfd>& found, tocsin::driver& to) const {
        for (const pollfd& each : found) {
            if (each.revents != 0) to.notify(all_.at(each.fd).id, to_ours(polled_names, each.revents));
        }
    }

private:
    struct polled {
        watch_id id;
        short events;
    };
    std::map<int, polled> all_;
};

class poll_loop {
public:
    tocsin::driver& driver() { return driver_; }
    void wake() { wake_(); }
    void forget() { watched_.update(driver_); }
    void run_once() {
        forget();
        const auto found = watched_.poll(driver_.poll_timeout(), wake_.descriptor());
        wake_.drain();
        watched_.report(found, driver_);
        driver_.run_due();
    }

private:
    wake_pipe wake_;
    tocsin::driver driver_{wake_};
    polled_list watched_;
};

// A loop over poll() that knows nothing of the driver but its descriptor.
class descriptor_loop {
public:
    descriptor_loop() = default;
    descriptor_loop(const descriptor_loop&) = delete;
    descriptor_loop& operator=(const descriptor_loop&) = delete;

    tocsin::driver& driver() { return driver_; }
    void wake() { wake_(); }
    void forget() { driver_.run_ready(); }
    void run_once() {
        pollfd found[] = {{wake_.descriptor(), POLLIN, 0}, {descriptor_, POLLIN, 0}};
        (void)::poll(found, 2, -1);
        wake_.drain();
        if (found[1].revents != 0) driver_.run_ready();
    }

private:
    wake_pipe wake_;
    class tocsin::driver driver_;
    const int descriptor_ = driver_.descriptor();
};

// A loop that never sleeps, such as a game's. One round is a frame. It asks in each frame, so nothing has to end a
// sleep: the driver has no `changed`.
class frame_loop {
public:
    tocsin::driver& driver() { return driver_; }
    void wake() {}
    void forget() { watched_.update(driver_); }
    void run_once() {
        const auto start_of_frame = std::chrono::steady_clock::now();
        forget();
        watched_.report(watched_.poll(0, no_bell), driver_);
        driver_.run_due(start_of_frame);
        std::this_thread::yield();  // here a game draws
    }

private:
    static constexpr int no_bell = -1;  // poll() ignores it

    tocsin::driver driver_;
    polled_list watched_;
};

#if defined(__linux__)
class epoll_loop {
public:
    epoll_loop() {
        require(loop_ >= 0, "epoll_create1");
        epoll_event bell{.events = EPOLLIN, .data = {.u64 = no_watch}};
        require(::epoll_ctl(loop_, EPOLL_CTL_ADD, wake_.descriptor(), &bell) == 0, "epoll_ctl");
    }
    ~epoll_loop() { ::close(loop_); }
    epoll_loop(const epoll_loop&) = delete;
    epoll_loop& operator=(const epoll_loop&) = delete;

    tocsin::driver& driver() { return driver_; }
    void wake() { wake_(); }
    void forget() {
        driver_.update([&](watch each) {
            refused_.remove(each.descriptor);
            if (const int error = tocsin::watch_with_epoll(loop_, each); error != 0)
                refused_.add(each, error);
        });
    }
    void run_once() {
        forget();
        epoll_event found[16];
        const int count = ::epoll_wait(loop_, found, 16, refused_.empty() ? driver_.poll_timeout() : 0);
        wake_.drain();
        for (int i = 0; i < count; ++i) {
            if (found[i].data.u64 == no_watch) continue;
            driver_.notify(tocsin::watch_of_epoll(found[i]), tocsin::found_by_epoll(found[i].events));
        }
        refused_.report_to(driver_);
        driver_.run_due();
    }

private:
    static constexpr std::uint64_t no_watch = 0;  // the pipe's

    wake_pipe wake_;
    tocsin::driver driver_{wake_};
    const int loop_ = ::epoll_create1(EPOLL_CLOEXEC);
    refused_list refused_;
};
#endif

#if defined(TOCSIN_TEST_LIBUV)
// update() and the timer are in a prepare handle, which the loop calls before it sleeps.
class libuv_loop {
public:
    libuv_loop() {
        require(uv_loop_init(&loop_) == 0, "uv_loop_init");
        uv_async_init(&loop_, &wake_, [](uv_async_t*) {});
        uv_timer_init(&loop_, &timer_);
        uv_prepare_init(&loop_, &before_sleep_);
        timer_.data = before_sleep_.data = this;
        uv_prepare_start(&before_sleep_, [](uv_prepare_t* it) {
            auto& self = *static_cast<libuv_loop*>(it->data);
            self.forget();
            const int timeout = self.refused_.empty() ? self.driver_.poll_timeout() : 0;
            if (timeout < 0) {
                uv_timer_stop(&self.timer_);
                return;
            }
            uv_update_time(&self.loop_);
            uv_timer_start(
                &self.timer_, [](uv_timer_t* due) { static_cast<libuv_loop*>(due->data)->run_due(); },
                static_cast<std::uint64_t>(timeout), 0);
        });
    }
    ~libuv_loop() {
        for (const auto& [descriptor, each] : watched_) close(each);
        uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr);
        uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
        uv_close(reinterpret_cast<uv_handle_t*>(&before_sleep_), nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        uv_loop_close(&loop_);
    }
    libuv_loop(const libuv_loop&) = delete;
    libuv_loop& operator=(const libuv_loop&) = delete;

    tocsin::driver& driver() { return driver_; }
    void wake() { changed_(); }
    void forget() {
        driver_.update([&](watch each) {
            refused_.remove(each.descriptor);
            if (each.renewed || each.asked == readiness::none) unwatch(each.descriptor);
            if (each.asked != readiness::none) start(each);
        });
    }
    void run_once() { uv_run(&loop_, UV_RUN_ONCE); }

private:
    static constexpr name_of names[] = {
        {readiness::readable, UV_READABLE},
        {readiness::writable, UV_WRITABLE},
        {readiness::urgent, UV_PRIORITIZED},
        {readiness::hang_up, UV_DISCONNECT},
    };
    struct watched {
        uv_poll_t poll;
        libuv_loop& of;
        watch_id id;
        int events;

        void start() {
            uv_poll_start(&poll, events, [](uv_poll_t* it, int status, int found) {
                static_cast<watched*>(it->data)->report(status, found);
            });
        }
        void report(int status, int found) {
            if (status < 0) start();  // libuv has stopped the handle
            of.driver_.notify(id, status < 0 ? readiness::error : to_ours(names, found));
        }
    };

    void start(watch which) {
        const auto known = watched_.find(which.descriptor);
        watched* const it = known != watched_.end() ? known->second : open(which);
        if (it == nullptr) return;
        it->id = which.id;
        it->events = to_theirs(names, which.asked);
        it->start();
    }
    watched* open(watch which) {
        auto made = std::unique_ptr<watched>(new watched{{}, *this, which.id, 0});
        if (const int error = uv_poll_init(&loop_, &made->poll, which.descriptor); error != 0) {
            refused_.add(which, -error);
            return nullptr;
        }
        made->poll.data = made.get();
        return watched_[which.descriptor] = made.release();
    }
    void unwatch(int descriptor) {
        const auto known = watched_.find(descriptor);
        if (known == watched_.end()) return;
        close(known->second);
        watched_.erase(known);
    }
    static void close(watched* each) {
        uv_close(reinterpret_cast<uv_handle_t*>(&each->poll),
                 [](uv_handle_t* it) { delete static_cast<watched*>(it->data); });
    }
    void run_due() {
        refused_.report_to(driver_);
        driver_.run_due();
    }
    struct wakes {
        uv_async_t& what;
        void operator()() const noexcept { uv_async_send(&what); }
    };

    uv_loop_t loop_;
    uv_async_t wake_;
    uv_timer_t timer_;
    uv_prepare_t before_sleep_;
    std::map<int, watched*> watched_;
    refused_list refused_;
    const wakes changed_{wake_};
    tocsin::driver driver_{changed_};
};
#endif

#if defined(TOCSIN_TEST_GLIB)
// A source of the main loop. GLib calls prepare() before it sleeps, and dispatch() after it.
class glib_loop {
public:
    glib_loop() {
        source_ = reinterpret_cast<source*>(g_source_new(&functions, sizeof(source)));
        source_->self = this;
        g_source_attach(&source_->base, context_);
    }
    ~glib_loop() {
        g_source_destroy(&source_->base);
        g_source_unref(&source_->base);
        g_main_context_unref(context_);
    }
    glib_loop(const glib_loop&) = delete;
    glib_loop& operator=(const glib_loop&) = delete;

    tocsin::driver& driver() { return driver_; }
    void wake() { changed_(); }
    void forget() {
        driver_.update([&](watch each) {
            auto& [id, tag] = watched_[each.descriptor];
            id = each.id;
            if (tag != nullptr && (each.renewed || each.asked == readiness::none))
                g_source_remove_unix_fd(&source_->base, std::exchange(tag, nullptr));
            const auto events = static_cast<GIOCondition>(to_theirs(names, each.asked));
            if (each.asked == readiness::none) {
                watched_.erase(each.descriptor);
            } else if (tag != nullptr) {
                g_source_modify_unix_fd(&source_->base, tag, events);
            } else {
                tag = g_source_add_unix_fd(&source_->base, each.descriptor, events);
            }
        });
    }
    void run_once() { g_main_context_iteration(context_, TRUE); }

private:
    // GLib passes the bits to poll(), even those for which it has no name.
    static constexpr int hang_up = G_IO_HUP | polled_hang_up;
    static constexpr name_of names[] = {
        {readiness::readable, G_IO_IN}, {readiness::writable, G_IO_OUT}, {readiness::urgent, G_IO_PRI},
        {readiness::hang_up, hang_up},  {readiness::error, G_IO_ERR},    {readiness::invalid, G_IO_NVAL},
    };
    struct source {
        GSource base;
        glib_loop* self;
    };
    static glib_loop& of(GSource* it) { return *reinterpret_cast<source*>(it)->self; }

    static gboolean prepare(GSource* it, int* timeout) {
        of(it).forget();
        *timeout = of(it).driver_.poll_timeout();
        return *timeout == 0;
    }
    static gboolean check(GSource* it) {
        for (const auto& [descriptor, each] : of(it).watched_) {
            if (g_source_query_unix_fd(it, each.tag) != 0) return TRUE;
        }
        return of(it).driver_.poll_timeout() == 0;
    }
    static gboolean dispatch(GSource* it, GSourceFunc, void*) {
        glib_loop& self = of(it);
        std::vector<std::pair<watch_id, readiness>> found;
        for (const auto& [descriptor, each] : self.watched_)
            found.emplace_back(each.id, to_ours(names, g_source_query_unix_fd(it, each.tag)));
        for (const auto& [id, what] : found) self.driver_.notify(id, what);
        self.driver_.run_due();
        return G_SOURCE_CONTINUE;
    }
    static inline GSourceFuncs functions{prepare, check, dispatch, nullptr, nullptr, nullptr};

    struct wakes {
        GMainContext* what;
        void operator()() const noexcept { g_main_context_wakeup(what); }
    };

    GMainContext* const context_ = g_main_context_new();
    source* source_ = nullptr;
    struct watched {
        watch_id id;
        void* tag;
    };
    std::map<int, watched> watched_;
    const wakes changed_{context_};
    tocsin::driver driver_{changed_};
};
#endif

#if defined(TOCSIN_TEST_ASIO)
// Asio's waits for descriptors end once, so the loop begins them again while the driver still asks for them.
class asio_loop {
public:
    asio_loop() = default;
    ~asio_loop() { watched_.clear(); }
    asio_loop(const asio_loop&) = delete;
    asio_loop& operator=(const asio_loop&) = delete;

    tocsin::driver& driver() { return driver_; }
    void wake() { changed_(); }
    void forget() {
        driver_.update([&](watch each) {
            refused_.remove(each.descriptor);
            if (each.renewed || each.asked == readiness::none) watched_.erase(each.descriptor);
            if (each.asked != readiness::none) start(each);
        });
        for (const auto& [descriptor, each] : watched_) each->wait();
    }
    void run_once() {
        forget();
        const tocsin::deadline next = driver_.next_deadline();
        timer_.expires_after(refused_.empty() ? until(next) : std::chrono::nanoseconds(0));
        timer_.async_wait([](const asio::error_code&) {});
        context_.restart();
        context_.run_one();
        context_.poll();
        refused_.report_to(driver_);
        driver_.run_due();
    }

private:
    using stream = asio::posix::stream_descriptor;

    // Asio's name for a readiness. Its wait for an error also ends when there is urgent data, and when both directions
    // are closed. Asio does not find that the peer alone has closed its direction.
    struct direction {
        readiness ours;
        stream::wait_type theirs;
    };
    static constexpr direction directions[] = {
        {readiness::readable, stream::wait_read},
        {readiness::writable, stream::wait_write},
        {readiness::urgent | readiness::hang_up, stream::wait_error},
    };

    struct watched : std::enable_shared_from_this<watched> {
        explicit watched(asio_loop& loop) : of(loop), it(loop.context_) {}
        ~watched() {
            if (it.is_open()) it.release();
        }
        watched(const watched&) = delete;
        watched& operator=(const watched&) = delete;

        void wait() {
            for (const direction& each : directions) {
                if (!has(asked, each.ours) || has(waits, each.ours)) continue;
                waits = waits | each.ours;
                it.async_wait(each.theirs,
                              [weak = weak_from_this(), what = each.ours](const asio::error_code& error) {
                                  if (const auto self = weak.lock()) self->report(what, error);
                              });
            }
        }
        void report(readiness what, const asio::error_code& error) {
            waits = static_cast<readiness>(static_cast<int>(waits) & ~static_cast<int>(what));
            if (error == asio::error::operation_not_supported) {  // a regular file: always ready
                of.driver_.notify(id, what & asked);
            } else if (error) {
                of.driver_.notify(id, readiness::error);
            } else if (const readiness found = look(it.native_handle()); found != readiness::none) {
                of.driver_.notify(id, found);
            }
        }
        // Asio does not say what it has found.
        readiness look(int number) const {
            pollfd one{number, static_cast<short>(to_theirs(polled_names, asked)), 0};
            (void)::poll(&one, 1, 0);
            return to_ours(polled_names, one.revents);
        }

        asio_loop& of;
        stream it;
        watch_id id{};
        readiness asked = readiness::none;
        readiness waits = readiness::none;
    };
    void start(watch which) {
        auto& one = watched_[which.descriptor];
        if (one == nullptr) one = std::make_shared<watched>(*this);
        one->id = which.id;
        one->asked = which.asked;
        if (one->it.is_open()) return;
        asio::error_code error;
        one->it.assign(which.descriptor, error);
        if (!error) return;
        refused_.add(which, error.value());
        watched_.erase(which.descriptor);
    }
    static std::chrono::nanoseconds until(const tocsin::deadline& next) {
        return next.is_never() ? std::chrono::hours(1) : std::chrono::nanoseconds(next.remaining());
    }
    struct wakes {
        asio::io_context& what;
        void operator()() const noexcept {
            asio::post(what, [] {});
        }
    };

    asio::io_context context_;
    asio::steady_timer timer_{context_};
    std::map<int, std::shared_ptr<watched>> watched_;
    refused_list refused_;
    wakes changed_{context_};
    tocsin::driver driver_{changed_};
};
#endif

}  // namespace driven
