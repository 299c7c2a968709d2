// SPDX-License-Identifier: Apache-2.0
// A thread changes a driver or a wait_set, and the process forks in the middle of the change. The child may destroy the
// object, although a container in it is half changed.
#include "child.hpp"
#include "forms_of_new.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

// A growing container still refers to its old memory while it frees that memory. If `destroy_in_child` is set, the next
// operator delete forks at this moment. The child calls `destroy_in_child`, and must not free the old memory again.
void (*destroy_in_child)() = nullptr;
pid_t child = 0;
void* freed_at_fork = nullptr;  // in the child

void fork_if_asked(void* freed) noexcept {
    if (destroy_in_child == nullptr) return;
    void (*const destroy)() = destroy_in_child;
    destroy_in_child = nullptr;
    child = fork();
    if (child != 0) return;
    freed_at_fork = freed;
    destroy();
    _exit(0);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    fork_if_asked(memory);
    if (memory != nullptr && memory == freed_at_fork) _exit(1);
    std::free(memory);
}

namespace {

// Calls `change(each)` for the objects, until one of these calls has forked. Returns how the child ended.
template <class Objects, class Change>
std::string ending_of_fork_in(Objects& objects, Change change, void (*destroy)()) {
    for (auto& each : objects) {
        destroy_in_child = destroy;
        change(each);
        destroy_in_child = nullptr;
        if (child != 0) return support::ending_of(std::exchange(child, 0));
    }
    return "nothing was freed";
}

TEST(ForkDuringChange, TheChildDestroysTheDriver) {
    static std::unique_ptr<tocsin::driver> loop;
    loop = std::make_unique<tocsin::driver>();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto make = [&] {
        return tocsin::any_operation([](tocsin::any_result) noexcept {}, {.until = std::chrono::hours(1)},
                                     tocsin::readable(ends[0]));
    };
    std::vector<std::unique_ptr<decltype(make())>> waits;
    for (int i = 0; i != 100; ++i) waits.emplace_back(new auto(make()))->by(*loop);
    EXPECT_EQ(ending_of_fork_in(waits, [](auto& each) { each->start(); }, [] { loop.reset(); }), "");
    waits.clear();
    loop.reset();
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(ForkDuringChange, TheChildDestroysTheWaitSet) {
    static std::unique_ptr<tocsin::wait_set> set;
    set = std::make_unique<tocsin::wait_set>();
    std::vector<tocsin::auto_reset_event> events(1'000);
    EXPECT_EQ(ending_of_fork_in(events, [](auto& each) { set->add(each, 1); }, [] { set.reset(); }), "");
    set.reset();
}

}  // namespace
