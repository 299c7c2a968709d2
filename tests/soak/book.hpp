// SPDX-License-Identifier: Apache-2.0
// What the soak counts: each thread has a ledger, each primitive a book.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace soak {

struct counts {
    std::uint64_t operations = 0;  // calls of the library
    std::uint64_t races = 0;       // those of them that met another thread's call, see docs/soak.md
    std::uint64_t in = 0;          // tokens given
    std::uint64_t out = 0;         // tokens received
    std::chrono::nanoseconds longest_wait{0};

    counts& operator+=(const counts& other) {
        operations += other.operations;
        races += other.races;
        in += other.in;
        out += other.out;
        longest_wait = std::max(longest_wait, other.longest_wait);
        return *this;
    }
};

// Written by one thread and read by any. Without a read-modify-write, which would order what the soak tests.
class alignas(64) ledger {
public:
    void operation(std::uint64_t count = 1) { bump(operations_, count); }
    void race(std::uint64_t count = 1) { bump(races_, count); }
    void in(std::uint64_t count = 1) { bump(in_, count); }
    void out(std::uint64_t count = 1) { bump(out_, count); }
    void waited(std::chrono::nanoseconds time) {
        if (time.count() > longest_.load(std::memory_order_relaxed)) {
            longest_.store(time.count(), std::memory_order_relaxed);
        }
    }

    std::uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }
    counts read() const {
        return {operations(), races_.load(std::memory_order_relaxed), in_.load(std::memory_order_relaxed),
                out_.load(std::memory_order_relaxed),
                std::chrono::nanoseconds(longest_.load(std::memory_order_relaxed))};
    }

private:
    static void bump(std::atomic<std::uint64_t>& field, std::uint64_t count) {
        field.store(field.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }
    std::atomic<std::uint64_t> operations_{0};
    std::atomic<std::uint64_t> races_{0};
    std::atomic<std::uint64_t> in_{0};
    std::atomic<std::uint64_t> out_{0};
    std::atomic<std::chrono::nanoseconds::rep> longest_{0};
};

class book {
public:
    explicit book(std::string name) : name_(std::move(name)) {}

    const std::string& name() const { return name_; }

    void open(const ledger& one) {
        const std::lock_guard lock(mutex_);
        open_.push_back(&one);
    }
    void close(const ledger& one) {
        const std::lock_guard lock(mutex_);
        std::erase(open_, &one);
        closed_ += one.read();
    }
    counts total() const {
        const std::lock_guard lock(mutex_);
        counts sum = closed_;
        for (const ledger* each : open_) sum += each->read();
        return sum;
    }

private:
    const std::string name_;
    mutable std::mutex mutex_;
    std::vector<const ledger*> open_;
    counts closed_;
};

}  // namespace soak
