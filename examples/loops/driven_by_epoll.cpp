// SPDX-License-Identifier: Apache-2.0
// The reverse of with_epoll.cpp: an epoll loop serves the deadlines and descriptors of coroutines. The whole program is
// one thread: an echo server that stops when its peer has been silent for a while.
#include "../support/task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/epoll.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using tocsin::readiness;

class epoll_loop {
public:
    epoll_loop() {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = no_watch;
        epoll_ctl(loop_, EPOLL_CTL_ADD, bell_, &event);
    }
    ~epoll_loop() {
        close(loop_);
        close(bell_);
    }
    epoll_loop(const epoll_loop&) = delete;
    epoll_loop& operator=(const epoll_loop&) = delete;

    tocsin::driver& driver() { return driver_; }

    void run_once() {
        // This program has sockets only, and epoll takes them all.
        driver_.update([this](tocsin::driver::watch each) { (void)tocsin::watch_with_epoll(loop_, each); });
        epoll_event found[16];
        const int count = epoll_wait(loop_, found, 16, driver_.poll_timeout());
        for (int i = 0; i < count; ++i) {
            if (found[i].data.u64 == no_watch) {
                eventfd_t rings;
                eventfd_read(bell_, &rings);
            } else {
                driver_.notify(tocsin::watch_of_epoll(found[i]), tocsin::found_by_epoll(found[i].events));
            }
        }
        driver_.run_due();
    }

private:
    // Ends the sleep of the loop. Another thread calls it when it begins a wait; this program has no other thread.
    struct ring {
        const int bell;
        void operator()() const noexcept { eventfd_write(bell, 1); }
    };

    static constexpr std::uint64_t no_watch = 0;  // the bell's

    const int loop_ = epoll_create1(EPOLL_CLOEXEC);
    const int bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const ring ring_{bell_};
    tocsin::driver driver_{ring_};
};

// Echoes until the peer has been silent for two seconds, or has closed.
task serve(int connection, tocsin::manual_reset_event& idle) {
    for (;;) {
        const auto [status, index, found] =
            co_await tocsin::async_wait_any({.until = 2s}, tocsin::readable(connection));
        char text[64];
        const ssize_t size =
            status == tocsin::wait_status::signaled ? read(connection, text, sizeof text) : 0;
        if (size <= 0 || write(connection, text, static_cast<std::size_t>(size)) != size) break;
    }
    idle.set();
}

// Says something every 5 ms, then falls silent.
task talk(int connection, int& echoes) {
    tocsin::auto_reset_event never;
    for (int i = 0; i != 5; ++i) {
        (void)co_await tocsin::async_wait({.until = 5ms}, never);
        if (write(connection, "hello", 5) != 5) co_return;
        (void)co_await tocsin::async_wait(tocsin::readable(connection));
        char text[64];
        if (read(connection, text, sizeof text) == 5) ++echoes;
    }
}

std::ptrdiff_t threads() {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
}

}  // namespace

int main() {
    int ends[2];
    const auto before = threads();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
    epoll_loop loop;
    tocsin::set_default_driver(&loop.driver());

    int echoes = 0;
    tocsin::manual_reset_event idle;
    const task server = serve(ends[0], idle);
    const task client = talk(ends[1], echoes);
    while (!idle.is_set()) loop.run_once();
    const auto started = threads() - before;
    std::printf("driven by epoll: %d echoes, then silence; %d threads started\n", echoes,
                static_cast<int>(started));
    close(ends[0]);
    close(ends[1]);
    return echoes == 5 && started == 0 ? 0 : 1;
}
