// SPDX-License-Identifier: Apache-2.0
// Makes set() safe in a signal handler. Why it is correct: signal_deferral.cpp.
#pragma once

#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)
#include "platform/shared_table/thread_slots.hpp"

#include <atomic>
#endif

namespace tocsin::core {

#if defined(TOCSIN_MODEL) || defined(_WIN32) || defined(__wasm__)

// Here no signal handler interrupts a thread.
class signal_deferral {
public:
    signal_deferral() noexcept {}
    ~signal_deferral() {}
    static bool defer(void (*)(void*) noexcept, void*) noexcept { return false; }
    static bool is_inside() noexcept { return false; }
    static bool has_deferred(const void*) noexcept { return false; }
};

#else

// The calls that handlers have deferred, in order. Only one thread and the handlers that interrupt it use the object.
class deferred_calls {
public:
    deferred_calls() noexcept {}  // leaves the slots as they are
    deferred_calls(const deferred_calls&) = delete;
    deferred_calls& operator=(const deferred_calls&) = delete;

    // Returns false if no slot is free and no slot in use can count the call (signal_deferral-4).
    bool add(void (*run)(void*) noexcept, void* what) noexcept;
    bool empty() const noexcept {
        return added_.load(std::memory_order_relaxed) ==
               finished_.load(std::memory_order_relaxed);  // no order
    }
    // Whether a call about `what` has been added and has not ended.
    bool has(const void* what) const noexcept;
    // Handlers may add further calls during run_all(), even in the slots of finished calls.
    void run_all() noexcept;

private:
    friend struct shared_layout;

    static constexpr unsigned slot_count = 16;

    struct slot {
        std::atomic<void (*)(void*) noexcept> run{nullptr};
        std::atomic<void*> what{nullptr};
        std::atomic<unsigned> times{0};  // how often it is still to run; only a new call raises it from 0
    };

    slot& slot_of(unsigned number) noexcept { return slots[number % slot_count]; }
    const slot& slot_of(unsigned number) const noexcept { return slots[number % slot_count]; }
    bool increment_last(void (*run)(void*) noexcept, void* what) noexcept;

    std::atomic<unsigned> added_{0};
    std::atomic<unsigned> finished_{0};
    std::atomic<bool> made_[slot_count]{};  // whether a slot has been used yet
    union {
        slot slots[slot_count];  // used in turn, each made by its first call
    };
};

// While an object of this class exists in a thread, the thread counts as inside the library, and its signal handlers
// defer their calls. The outermost object keeps these calls.
class signal_deferral {
public:
    signal_deferral() noexcept;
    ~signal_deferral() {
        if (is_outermost_) leave();
    }
    signal_deferral(const signal_deferral&) = delete;
    signal_deferral& operator=(const signal_deferral&) = delete;

    // If the caller is a handler that has interrupted a thread that is inside, defers `run(what)` and returns true.
    // Otherwise returns false.
    static bool defer(void (*run)(void*) noexcept, void* what) noexcept;
    // Whether the calling thread is inside. In a handler: whether the interrupted thread is inside.
    static bool is_inside() noexcept {
        return platform::slot_of_this_thread(platform::thread_slot::deferral) != nullptr;
    }
    // Whether a deferred call of this thread about `what` is pending.
    static bool has_deferred(const void* what) noexcept;

private:
    // A thread and its handlers need only the compiler's order.
    static void mark(deferred_calls* calls) noexcept {
        std::atomic_signal_fence(std::memory_order_seq_cst);  // no order between threads
        platform::set_slot_of_this_thread(platform::thread_slot::deferral, calls);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // no order between threads
    }
    void leave() noexcept;

    const bool is_outermost_;
    mutable deferred_calls calls_;  // used in the outermost object; mutable because scopes are const
};

inline signal_deferral::signal_deferral() noexcept : is_outermost_(!is_inside()) {
    if (is_outermost_) mark(&calls_);
}

#endif

}  // namespace tocsin::core
