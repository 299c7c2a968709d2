// SPDX-License-Identifier: Apache-2.0
// An echo server on the loopback interface. One wait covers every reason to wake: new connections, data from a thousand
// of them, replies that worker threads have finished, and the shutdown.
//
//     echo_server [PORT]
//
// Prints the port and serves until SIGTERM or SIGINT. Then the server stops accepting, lets the workers finish, sends
// their replies, closes everything and prints how much it has served. A worker thread answers each chunk that is read.
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

tocsin::manual_reset_event shutdown_asked;

extern "C" void on_signal(int) { shutdown_asked.set(); }

int checked(int result, const char* what) {
    if (result < 0) throw std::system_error(errno, std::system_category(), what);
    return result;
}

class descriptor {
public:
    explicit descriptor(int number) : number_(number) {}
    descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() {
        if (number_ >= 0) close(number_);
    }
    int number() const { return number_; }

private:
    int number_;
};

descriptor listen_on(std::uint16_t port) {
    descriptor listener(checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
    const int on = 1;
    checked(setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setsockopt");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    checked(bind(listener.number(), plain, size), "bind");
    checked(listen(listener.number(), 1024), "listen");
    checked(getsockname(listener.number(), plain, &size), "getsockname");
    std::printf("listening on port %u\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return listener;
}

// A thread that makes replies. It sets the event `done` when there are some.
class worker {
public:
    struct reply {
        std::uint64_t connection;
        std::string text;
    };

    void take(std::uint64_t connection, std::string text) {
        thread_.post([this, connection, text = std::move(text)]() mutable {
            {
                const std::lock_guard lock(mutex_);
                replies_.push_back({connection, std::move(text)});
            }
            done_.set();
        });
    }
    std::vector<reply> finished() {
        const std::lock_guard lock(mutex_);
        return std::exchange(replies_, {});
    }
    tocsin::auto_reset_event& done() { return done_; }
    void finish() { thread_.join(); }

private:
    std::mutex mutex_;
    std::vector<reply> replies_;
    tocsin::auto_reset_event done_;
    tocsin::handler_thread thread_;  // the last member, because the thread uses the others
};

class server {
public:
    explicit server(std::uint16_t port) : listener_(listen_on(port)) {
        everything_.add(shutdown_asked, shutdown_tag);
        everything_.add(tocsin::readable(listener_.number()), listener_tag);
        for (std::size_t i = 0; i != workers_.size(); ++i)
            everything_.add(workers_[i].done(), first_worker_tag + i);
    }

    void run() {
        std::array<tocsin::ready_item, 128> ready;
        for (bool going_on = true; going_on;) {
            const std::size_t count = everything_.wait(ready).count;
            for (std::size_t i = 0; i != count; ++i) {
                const std::uint64_t tag = ready[i].tag;
                if (tag == shutdown_tag) {
                    going_on = false;
                } else if (tag == listener_tag) {
                    accept_all();
                } else if (tag < first_connection_tag) {
                    send_finished(workers_[tag - first_worker_tag]);
                } else {
                    read_from(tag);
                }
            }
        }
        everything_.remove(tocsin::readable(listener_.number()));
        for (worker& each : workers_) {
            each.finish();
            send_finished(each);
        }
        std::printf("bye: %llu connections, %llu bytes\n", static_cast<unsigned long long>(accepted_),
                    static_cast<unsigned long long>(echoed_));
    }

private:
    static constexpr std::uint64_t shutdown_tag = 0;
    static constexpr std::uint64_t listener_tag = 1;
    static constexpr std::uint64_t first_worker_tag = 2;
    static constexpr std::uint64_t first_connection_tag = 1000;

    void accept_all() {
        for (;;) {
            descriptor made(accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (made.number() < 0) {
                if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
                throw std::system_error(errno, std::system_category(), "accept");
            }
            const std::uint64_t tag = first_connection_tag + accepted_++;
            everything_.add(tocsin::readable(made.number()), tag);
            connections_.emplace(tag, std::move(made));
        }
    }

    void read_from(std::uint64_t tag) {
        const auto found = connections_.find(tag);
        if (found == connections_.end()) return;
        std::array<char, 4096> bytes;
        const ssize_t size = recv(found->second.number(), bytes.data(), bytes.size(), 0);
        if (size > 0) {
            const std::string text(bytes.data(), static_cast<std::size_t>(size));
            workers_[tag % workers_.size()].take(tag,
                                                 text);  // always the same, so that replies stay in order
        } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
            everything_.remove(tocsin::readable(found->second.number()));
            connections_.erase(found);
        }
    }

    void send_finished(worker& from) {
        for (const worker::reply& each : from.finished()) {
            const auto found = connections_.find(each.connection);
            if (found == connections_.end()) continue;  // closed in the meantime
            send_all(found->second.number(), each.text);
            echoed_ += each.text.size();
        }
    }

    // An echo is no larger than the chunk that was read, so it fits into the socket's buffer unless the client doesn't
    // read. If it doesn't fit, the server waits for this client or for the shutdown.
    static void send_all(int to, std::string_view text) {
        while (!text.empty()) {
            const ssize_t sent = send(to, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                text.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno == EAGAIN) {
                if (tocsin::wait_any(shutdown_asked, tocsin::writable(to)).index == 0) return;
            } else if (errno != EINTR) {
                return;  // the client has closed: the next wait reports the socket
            }
        }
    }

    descriptor listener_;
    std::array<worker, 2> workers_;
    std::map<std::uint64_t, descriptor> connections_;
    std::uint64_t accepted_ = 0;
    std::uint64_t echoed_ = 0;
    tocsin::wait_set everything_;
};

void allow_many_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) try {
    std::signal(SIGTERM, on_signal);
    std::signal(SIGINT, on_signal);
    allow_many_descriptors();
    server(static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)).run();
} catch (const std::exception& error) {
    std::fprintf(stderr, "echo_server: %s\n", error.what());
    return 1;
}
