// SPDX-License-Identifier: Apache-2.0
// A plug-in with a copy of the library of its own.
#include "plugin.hpp"

#include <tocsin/tocsin.hpp>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace {

// An item that calls a function when it is moved.
struct parcel {
    explicit parcel(void (*call)()) noexcept : moves(call) {}
    parcel(parcel&& other) noexcept {
        if (auto* const call = std::exchange(other.moves, nullptr)) call();
    }
    void (*moves)() = nullptr;
};

}  // namespace

struct shared_objects {
    tocsin::word_lock<> lock;
    tocsin::counting_semaphore<> permits{0};
    tocsin::condition changed;
    bool is_changed = false;
    tocsin::channel<int> numbers{1};
    tocsin::channel<parcel> first{0};
    tocsin::channel<parcel> second{0};
};

namespace {

using namespace std::chrono_literals;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

// The deadline of every wait here, so that the test fails and does not hang if a wake-up is lost.
constexpr auto patience = 20s;

static_assert(sizeof(auto_reset_event) == sizeof(byte_of_event));
auto_reset_event& event_at(byte_of_event* where) { return *reinterpret_cast<auto_reset_event*>(where); }
manual_reset_event& gate_at(byte_of_event* where) { return *reinterpret_cast<manual_reset_event*>(where); }

// A coroutine that frees its frame when it is done or, if `Stays`, keeps it.
template <bool Stays>
struct task {
    struct promise_type {
        task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            if constexpr (Stays) {
                return std::suspend_always();
            } else {
                return std::suspend_never();
            }
        }
        void return_void() {}
        void unhandled_exception() { std::abort(); }
    };
    std::coroutine_handle<promise_type> frame;
};

template <bool Stays, class Event>
task<Stays> wait_then(Event& event, void (*then)(void*), void* with) {
    (void)co_await tocsin::async_wait(event);
    then(with);
}

task<false> deadline_then(void (*then)(void*), void* with) {
    auto_reset_event never;
    (void)co_await tocsin::async_wait({.until = 1ms}, never);
    then(with);
}

// An operation on the heap that is destroyed when its function is called or, if `Stays`, is kept.
template <bool Stays, class Event>
struct heap_operation {
    heap_operation(Event& event, void (*call)(void*), void* argument)
        : then(call), with(argument), wait(tocsin::any_operation(ended{this}, event)) {}

    struct ended {
        void operator()(tocsin::any_result) const noexcept { self->end(); }
        heap_operation* self;
    };
    void end() noexcept {
        auto* const call = then;
        void* const argument = with;
        if constexpr (!Stays) delete this;
        call(argument);
    }

    void (*const then)(void*);
    void* const with;
    decltype(tocsin::any_operation(std::declval<ended>(), std::declval<Event&>())) wait;
};
using kept_operation = heap_operation<true, manual_reset_event>;

bool wait(byte_of_event* event) { return event_at(event).wait_for(patience) == wait_status::signaled; }
void set(byte_of_event* event) { event_at(event).set(); }
void set_gate(byte_of_event* gate) { gate_at(gate).set(); }

bool wait_polling(byte_of_event* event, int descriptor) {
    const auto found = tocsin::wait_any({.until = patience}, event_at(event), tocsin::readable(descriptor));
    return found.status == wait_status::signaled && found.index == 0;
}

bool wait_for_all(byte_of_event* const* events, std::size_t count) {
    std::array<tocsin::source, 2> all{event_at(events[0]), event_at(events[1])};
    return count == all.size() &&
           tocsin::wait_all({.until = patience}, std::span<const tocsin::source>(all)) ==
               wait_status::signaled;
}

std::uint64_t parked(const void* object) {
    for (const tocsin::parked_wait& each : tocsin::parked_waits()) {
        if (each.address == object) return each.thread;
    }
    return 0;
}

void start(byte_of_event* event, void (*then)(void*), void* with) {
    wait_then<false>(event_at(event), then, with);
}
void start_at_gate(byte_of_event* gate, void (*then)(void*), void* with) {
    wait_then<false>(gate_at(gate), then, with);
}
void* start_kept(byte_of_event* gate, void (*then)(void*), void* with) {
    return wait_then<true>(gate_at(gate), then, with).frame.address();
}
void start_operation(byte_of_event* event, void (*then)(void*), void* with) {
    (new heap_operation<false, auto_reset_event>(event_at(event), then, with))->wait.start();
}
void* start_kept_operation(byte_of_event* gate, void (*then)(void*), void* with) {
    auto* const kept = new kept_operation(gate_at(gate), then, with);
    kept->wait.start();
    return kept;
}
void destroy_operation(void* operation) { delete static_cast<kept_operation*>(operation); }
void destroy(void* frame) { std::coroutine_handle<>::from_address(frame).destroy(); }
void start_deadline(void (*then)(void*), void* with) { deadline_then(then, with); }

shared_objects* make() { return new shared_objects; }
void destroy_objects(shared_objects* all) { delete all; }

const void* address_of(shared_objects* all, kind_of_object which) {
    switch (which) {
        case kind_of_object::lock: return &all->lock;
        case kind_of_object::semaphore: return &all->permits;
        case kind_of_object::condition: return &all->changed;
        case kind_of_object::channel: return &all->numbers;
    }
    return nullptr;
}

bool lock(shared_objects* all) { return all->lock.try_lock_for(patience); }
void unlock(shared_objects* all) { all->lock.unlock(); }

bool acquire(shared_objects* all) { return all->permits.try_acquire_for(2, patience); }
void release(shared_objects* all) { all->permits.release(); }

bool wait_for_condition(shared_objects* all) {
    std::unique_lock held(all->lock);
    return all->changed.wait_for(held, patience, [&] { return std::exchange(all->is_changed, false); });
}
void notify(shared_objects* all) {
    {
        const std::scoped_lock held(all->lock);
        all->is_changed = true;
    }
    all->changed.notify_one();
}

bool send(shared_objects* all, int number) {
    return all->numbers.send_for(number, patience) == tocsin::channel_status::done;
}
bool receive(shared_objects* all, int number) {
    const auto next = all->numbers.receive_for(patience);
    return next && *next == number;
}

bool send_or_receive(shared_objects* all, bool sends_at_first) {
    parcel item(nullptr);
    auto sending = (sends_at_first ? all->first : all->second).sending(item);
    auto receiving = (sends_at_first ? all->second : all->first).receiving();
    return tocsin::wait_any({.until = patience}, sending, receiving).status == wait_status::signaled;
}

// A source that is never ready. A wait enlists it after it has looked at all its sources.
template <class Work>
struct between_look_and_enlist {
    Work work;
    bool try_wait() noexcept { return false; }
    bool enlist(tocsin::wait_entry&) noexcept {
        work();
        return true;
    }
    void delist(tocsin::wait_entry&) noexcept {}
};

bool meet(shared_objects* all, bool at_first, void (*moves)()) {
    auto& where = at_first ? all->first : all->second;
    bool is_received = false;
    std::jthread receiver;
    between_look_and_enlist hook{[&] {
        receiver = std::jthread([&] { is_received = static_cast<bool>(where.receive_for(patience)); });
        while (parked(&where) == 0) std::this_thread::yield();
    }};
    parcel item(moves);
    auto sending = where.sending(item);
    const auto found = tocsin::wait_any({.until = patience}, hook, sending);
    receiver.join();
    return is_received && found.status == wait_status::signaled && found.index == 1;
}

bool is_lock_waited_for() {
    for (const tocsin::parked_wait& each : tocsin::parked_waits()) {
        if (each.what == tocsin::parked_wait::kind::lock) return true;
    }
    return false;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const plugin_functions* functions_of_plugin() {
    static const plugin_functions all{wait,
                                      set,
                                      set_gate,
                                      wait_polling,
                                      wait_for_all,
                                      parked,
                                      start,
                                      start_at_gate,
                                      start_kept,
                                      destroy,
                                      start_operation,
                                      start_kept_operation,
                                      destroy_operation,
                                      start_deadline,
                                      make,
                                      destroy_objects,
                                      address_of,
                                      lock,
                                      unlock,
                                      acquire,
                                      release,
                                      wait_for_condition,
                                      notify,
                                      send,
                                      receive,
                                      send_or_receive,
                                      meet,
                                      is_lock_waited_for};
    return &all;
}
