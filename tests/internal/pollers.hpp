// SPDX-License-Identifier: Apache-2.0
// The backends of src/platform/poller/poller.hpp that this machine can run, and the parts that their tests share.
#pragma once

#include "platform/poller/poller.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pollers {

using namespace std::chrono_literals;
using tocsin::deadline;
namespace platform = tocsin::platform;
using platform::doorbell_id;
using platform::kqueue_poller;
using platform::no_doorbell;
using platform::poll_entry;
using platform::poll_result;
using platform::poll_set;
using platform::posix_poller;
using platform::readiness;
#if defined(__linux__)
using platform::linux_poller;
using backends = testing::Types<linux_poller, kqueue_poller, posix_poller>;  // kqueue: tests/support/kqueue
#else
using backends = testing::Types<kqueue_poller, posix_poller>;
#endif

class owned {
public:
    explicit owned(int descriptor = -1) : descriptor_(descriptor) {}
    owned(owned&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    owned& operator=(owned&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~owned() { close(); }
    operator int() const { return descriptor_; }  // so that it can be passed like a plain one
    void close() {
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    }

private:
    int descriptor_;
};

struct both_ends {
    owned read;
    owned write;
    void put() const { ASSERT_EQ(::write(write, "x", 1), 1); }
    void get() const {
        char byte;
        ASSERT_EQ(::read(read, &byte, 1), 1);
    }
};

inline both_ends make_pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    return {owned(ends[0]), owned(ends[1])};
}

inline std::pair<owned, owned> make_sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return {owned(ends[0]), owned(ends[1])};
}

// A connection over loopback: the listening socket and both ends.
struct connection {
    owned listening{socket(AF_INET, SOCK_STREAM, 0)};
    owned client{socket(AF_INET, SOCK_STREAM, 0)};
    owned server;

    connection() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        EXPECT_EQ(bind(listening, any, size), 0);
        EXPECT_EQ(listen(listening, 1), 0);
        EXPECT_EQ(getsockname(listening, any, &size), 0);
        EXPECT_EQ(connect(client, any, size), 0);
    }
    void accept_it() { server = owned(accept(listening, nullptr, nullptr)); }
};

template <class Backend>
class taken_bell {
public:
    taken_bell() : taken_(Backend::take_doorbell()) { EXPECT_EQ(taken_.error, 0); }
    taken_bell(const taken_bell&) = delete;
    taken_bell& operator=(const taken_bell&) = delete;
    ~taken_bell() { Backend::give_doorbell_back(taken_.id); }
    operator doorbell_id() const { return taken_.id; }  // so that it can be passed like a plain one

private:
    platform::taken_doorbell taken_;
};

template <class Backend>
poll_result poll_one(poll_entry& one, const deadline& until, doorbell_id bell = no_doorbell) {
    return Backend::poll({&one, 1}, bell, until);
}

// What one look finds.
template <class Backend>
readiness state_of(int descriptor, readiness asked) {
    poll_entry one{descriptor, asked};
    const auto result = poll_one<Backend>(one, 0s);
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.ready, one.found == readiness::none ? 0u : 1u);
    EXPECT_EQ(result.timed_out, one.found == readiness::none);
    return one.found;
}

// Waits for the bell alone. Returns whether it was rung, perhaps for no reason.
template <class Backend>
bool is_rung(doorbell_id bell, const deadline& until) {
    const auto result = Backend::poll({}, bell, until);
    EXPECT_EQ(result.error, 0);
    EXPECT_NE(result.rung, result.timed_out);
    return result.rung;
}

template <class Backend>
std::unique_ptr<poll_set> open_set() {
    int error = -1;
    auto set = Backend::open_poll_set(error);
    EXPECT_EQ(error, 0);
    return set;
}

// The tags that one wait reports.
inline std::set<std::uint64_t> tags_in(poll_set& set, const deadline& until = 0s) {
    std::array<poll_set::item, 64> items;
    const auto result = set.wait(items, until);
    EXPECT_EQ(result.error, 0);
    std::set<std::uint64_t> tags;
    for (const auto& each : std::span(items).first(result.ready)) {
        EXPECT_TRUE(tags.insert(each.tag).second) << "twice in one report: " << each.tag;
    }
    return tags;
}
using tags = std::set<std::uint64_t>;

inline std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Raises this process's limit of descriptors as far as it may go. Returns how many may be open then.
inline std::size_t raise_descriptor_limit() {
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_max, 1'000'000));
}

// For a child process: uses up descriptors until it can open no more.
inline void exhaust_descriptors() {
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(90);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    if (errno != EMFILE) _exit(91);
}

}  // namespace pollers
