// A call that finds no memory throws, and leaves everything as it was.
#include "facts.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/handler_thread.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>

namespace {

using support::thread_group;
using tocsin::handler_thread;
using tocsin::manual_reset_event;

thread_local bool has_no_memory = false;

// A handler frees the memory of a queue that has grown beyond 4096 jobs, so the next post has to allocate.
constexpr std::size_t capacity = 5000;

class obstacle {
public:
    void operator()() {
        begun.set();
        go.wait();
    }
    manual_reset_event begun, go;
};

void fill(handler_thread& handler, std::size_t up_to = capacity) {
    while (handler.queued() != up_to) handler.post([] {});
}

// Two threads wait for space. The first that gets it finds no memory, so the second gets it, although the handler is
// busy with a job.
TEST(OutOfMemory, APostThatThrowsLeavesTheSpaceToTheNext) {
    obstacle first, second, third;
    std::atomic<bool> threw{false}, posted{false};
    tocsin::handler_options bounded;
    bounded.capacity = capacity;
    handler_thread handler(bounded);
    handler.post(std::ref(first));
    first.begun.wait();
    fill(handler, capacity - 1);
    handler.post(std::ref(second));
    first.go.set();
    second.begun.wait();  // the last of its batch
    handler.post(std::ref(third));
    fill(handler);
    thread_group threads;
    threads.start("has no memory", [&] {
        has_no_memory = true;
        try {
            handler.post([] {});
        } catch (const std::bad_alloc&) {
            threw.store(true);
        }
        has_no_memory = false;
    });
    threads.until_asleep(0);
    threads.start("has memory", [&] {
        handler.post([] {});
        posted.store(true);
    });
    threads.until_asleep(1);
    second.go.set();
    third.begun.wait();
    support::until("the second to post", [&] { return posted.load(); });
    EXPECT_TRUE(threw.load());
    third.go.set();
    threads.join();
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
    if (!has_no_memory) {
        if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
