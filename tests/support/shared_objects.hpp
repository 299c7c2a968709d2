// SPDX-License-Identifier: Apache-2.0
// For tests of objects that processes share: memory for one, facts to wait for, and children that are killed.
#pragma once

#include "child.hpp"
#include "facts.hpp"
#include "sanitizer.hpp"

#include <tocsin/shared_memory.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shared_objects {

using support::is_asleep;

// One object in shared memory, and a page of flags for the test's own use.
template <class Object>
class placed {
public:
    placed()
        : memory_(tocsin::shared_memory::anonymous(sizeof(Object) + 4096)),
          object_(&tocsin::shared_at<Object>(memory_.data(), memory_.size())) {}
    Object& operator*() const { return *object_; }
    Object* operator->() const { return object_; }
    unsigned char* bytes() const { return static_cast<unsigned char*>(memory_.data()); }
    std::atomic<std::uint32_t>& flag(unsigned which) const {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(bytes() + sizeof(Object) + 64 * which);
    }
    tocsin::shared_memory& memory() { return memory_; }

    // How many slots are in a state (detail/shared_layout.hpp): 1 waiting, 2 granted.
    unsigned slots_in(unsigned state) const {
        unsigned count = 0;
        for (unsigned i = 0; i != Object::slots; ++i) count += (word_of(i) >> 32 & 3) == state ? 1 : 0;
        return count;
    }
    std::uint64_t word_of(unsigned slot) const {
        return reinterpret_cast<const std::atomic<std::uint64_t>*>(bytes() + 64 + 64 * slot)->load();
    }
    std::uint32_t owner_of(unsigned slot) const {
        return reinterpret_cast<const std::atomic<std::uint32_t>*>(bytes() + 64 + 64 * slot + 8)->load();
    }

private:
    tocsin::shared_memory memory_;
    Object* object_;
};

// Anything in zeroed, shared memory.
template <class Object>
class placed_bytes {
public:
    Object& operator*() const { return *static_cast<Object*>(memory_.data()); }

private:
    tocsin::shared_memory memory_ = tocsin::shared_memory::anonymous(sizeof(Object));
};

// Waits for a fact that other threads or processes bring about. Returns false if it does not come true within
// patience().
template <class Fact>
bool comes_true(Fact fact) {
    const auto end = std::chrono::steady_clock::now() + support::patience();
    while (!fact()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

// Runs a function in a child process, which then ends. Under AddressSanitizer all other threads sleep at the moment of
// the fork (ending_of_child() in child.hpp says why).
template <class Function>
pid_t in_child(Function function) {
    if (support::address_sanitizer) support::until_others_sleep();
    const pid_t child = ::fork();
    if (child != 0) return child;
    function();
    ::_exit(0);
}

inline int end_of(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    return status;
}

inline void kill_now(pid_t child) {
    ::kill(child, SIGKILL);
    (void)end_of(child);
}

}  // namespace shared_objects
