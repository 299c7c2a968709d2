// A plug-in with a copy of the library of its own.
#include "plugin.hpp"

#include <tocsin/tocsin.hpp>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstdlib>

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

std::uint64_t parked(byte_of_event* event) {
    for (const tocsin::parked_wait& each : tocsin::parked_waits()) {
        if (each.address == event) return each.thread;
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
void destroy(void* frame) { std::coroutine_handle<>::from_address(frame).destroy(); }
void start_deadline(void (*then)(void*), void* with) { deadline_then(then, with); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const plugin_functions* functions_of_plugin() {
    static const plugin_functions all{wait,  set,           set_gate,   wait_polling, wait_for_all,  parked,
                                      start, start_at_gate, start_kept, destroy,      start_deadline};
    return &all;
}
