// SPDX-License-Identifier: Apache-2.0
// Waking a thread that waits for sockets: what event loops are made of. A waker is constructed with the descriptors of
// the idle sockets; any thread may call wake(), and wait() returns after one or more wakes.
#pragma once

#include "../contestant.hpp"
#include "descriptors.hpp"
#include "waker_only.hpp"

#include <atomic>
#include <span>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

namespace lab {

class pipe_poll_waker {
public:
    explicit pipe_poll_waker(std::span<const int> idle) : wanted_{{pipe_.to_poll(), POLLIN, 0}} {
        for (const int each : idle) wanted_.push_back({each, POLLIN, 0});
    }
    void wake() noexcept { pipe_.set(); }
    void wait() noexcept {
        while (poll(wanted_.data(), wanted_.size(), -1) < 1 || !pipe_.take()) {
        }
    }

private:
    pipe_descriptor pipe_{false};
    std::vector<pollfd> wanted_;
};

class pipe_select_waker {
public:
    static constexpr std::size_t max_descriptors = 1'000;  // select() takes no descriptor above 1,023

    explicit pipe_select_waker(std::span<const int> idle) {
        FD_ZERO(&wanted_);
        add(pipe_.to_poll());
        for (const int each : idle) add(each);
    }
    void wake() noexcept { pipe_.set(); }
    void wait() noexcept {
        fd_set found;
        do {
            found = wanted_;
        } while (select(greatest_ + 1, &found, nullptr, nullptr, nullptr) < 1 || !pipe_.take());
    }

private:
    void add(int descriptor) noexcept {
        FD_SET(descriptor, &wanted_);
        greatest_ = std::max(greatest_, descriptor);
    }

    pipe_descriptor pipe_{false};
    fd_set wanted_;
    int greatest_ = 0;
};

// The poll is edge-triggered, so nobody reads the eventfd. It is written only if the waiter has looked since the last
// write.
class eventfd_epoll_waker {
public:
    explicit eventfd_epoll_waker(std::span<const int> idle) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        add(bell_.to_poll(), EPOLLIN | EPOLLET);
        for (const int each : idle) add(each, EPOLLIN);
    }
    ~eventfd_epoll_waker() { close(epoll_); }
    eventfd_epoll_waker(const eventfd_epoll_waker&) = delete;
    eventfd_epoll_waker& operator=(const eventfd_epoll_waker&) = delete;

    void wake() noexcept {
        if (!rung_.exchange(true)) bell_.set();
    }
    void wait() noexcept {
        epoll_event found[16];
        while (!rung_.load()) (void)epoll_wait(epoll_, found, 16, -1);
        rung_.exchange(false);
    }

private:
    void add(int descriptor, std::uint32_t events) noexcept {
        epoll_event wanted{};
        wanted.events = events;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &wanted);
    }

    int epoll_;
    eventfd_descriptor bell_{false};
    std::atomic<bool> rung_{false};
};

struct pipe_poll {
    static constexpr waker_only info{"pipe_poll", "pipe + poll",
                                     "a byte into a pipe, poll() over it and the sockets",
                                     "two descriptors a waiter"};
    using loop_waker = pipe_poll_waker;
};

struct pipe_select {
    static constexpr waker_only info{"pipe_select", "pipe + select",
                                     "a byte into a pipe, select() over it and the sockets",
                                     "no descriptor above 1,023"};
    using loop_waker = pipe_select_waker;
};

struct eventfd_epoll {
    static constexpr waker_only info{
        "eventfd_epoll", "tracked eventfd + epoll",
        "an eventfd, edge-triggered in an epoll set with the sockets; a flag saves writes",
        "two descriptors a waiter"};
    using loop_waker = eventfd_epoll_waker;
};

}  // namespace lab
