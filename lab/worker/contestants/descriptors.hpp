// SPDX-License-Identifier: Apache-2.0
// Descriptors as events: every operation is a system call, and a poller can wait for them.
#pragma once

#include "../contestant.hpp"
#include "../measure/clock.hpp"

#include <array>
#include <cstdint>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace lab {

// Both events made of a Descriptor: set() makes it readable, take() empties it and returns whether there was something,
// to_poll() is the descriptor that becomes readable. The argument of its constructor says whether take() blocks until
// there is something.
template <class Descriptor>
struct polled {
    static constexpr bool is_descriptor = true;

    static bool ready_within(const Descriptor& it, const timespec* longest) noexcept {
        pollfd wanted{it.to_poll(), POLLIN, 0};
        return ppoll(&wanted, 1, longest, nullptr) == 1;
    }

    class manual_event {
    public:
        void set() noexcept { it_.set(); }
        void reset() noexcept { (void)it_.take(); }
        bool is_set() const noexcept {
            const timespec none{};
            return ready_within(it_, &none);
        }
        void wait() const noexcept {
            while (!ready_within(it_, nullptr)) {
            }
        }

    private:
        Descriptor it_{false};
    };

    class auto_event {
    public:
        void set() noexcept { it_.set(); }
        void wait() noexcept {
            while (!it_.take()) {
            }
        }
        // For one consumer only: another could take it between poll and read.
        bool try_wait() noexcept { return wait_for(std::chrono::nanoseconds(0)); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            const timespec relative = timespec_of(longest.count());
            return ready_within(it_, &relative) && it_.take();
        }

    private:
        Descriptor it_{true};
    };
};

class eventfd_descriptor {
public:
    explicit eventfd_descriptor(bool blocks) noexcept
        : number_(eventfd(0, EFD_CLOEXEC | (blocks ? 0 : EFD_NONBLOCK))) {}
    ~eventfd_descriptor() { close(number_); }
    eventfd_descriptor(const eventfd_descriptor&) = delete;
    eventfd_descriptor& operator=(const eventfd_descriptor&) = delete;

    void set() noexcept {
        const std::uint64_t one = 1;
        (void)!write(number_, &one, sizeof one);
    }
    bool take() noexcept {
        std::uint64_t count = 0;
        return read(number_, &count, sizeof count) == sizeof count;
    }
    int to_poll() const noexcept { return number_; }

private:
    int number_;
};

// A full pipe is as set as one with a single byte, so writing doesn't block, and a write that fails is ignored.
class pipe_descriptor {
public:
    explicit pipe_descriptor(bool blocks) noexcept {
        (void)!pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK);
        if (blocks) fcntl(ends_[0], F_SETFL, 0);
    }
    ~pipe_descriptor() {
        close(ends_[0]);
        close(ends_[1]);
    }
    pipe_descriptor(const pipe_descriptor&) = delete;
    pipe_descriptor& operator=(const pipe_descriptor&) = delete;

    void set() noexcept { (void)!write(ends_[1], "", 1); }
    bool take() noexcept {
        char bytes[4096];
        return read(ends_[0], bytes, sizeof bytes) > 0;
    }
    int to_poll() const noexcept { return ends_[0]; }

private:
    std::array<int, 2> ends_{-1, -1};
};

struct eventfd_event : polled<eventfd_descriptor> {
    static constexpr contestant_info info{
        .name = "eventfd",
        .label = "eventfd",
        .role = role::peer,
        .about = "an eventfd: write sets; read consumes (auto), poll looks (manual)",
        .limits = "a descriptor each; every call enters the kernel; set then reset may release nobody",
        .no_lock = "is an event",
        .no_address_wait = "is a kernel object, not an address",
    };
};

struct pipe_event : polled<pipe_descriptor> {
    static constexpr contestant_info info{
        .name = "pipe",
        .label = "pipe",
        .role = role::peer,
        .about = "a pipe: writing a byte sets; reading all consumes (auto), poll looks (manual)",
        .limits =
            "two descriptors each; every call enters the kernel; more than 4,096 sets in a row are "
            "consumed in parts; set then reset may release nobody",
        .no_lock = "is an event",
        .no_address_wait = "is a kernel object, not an address",
        .included_from = tier::full,
    };
};

}  // namespace lab
