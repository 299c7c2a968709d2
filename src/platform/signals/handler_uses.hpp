// SPDX-License-Identifier: Apache-2.0
// Lets signal handlers use an object that a thread may take away, without a lock.
//
// State: one word. It has a bit that says that the object is open to handlers, and the number of handlers that use it.
//
// Why it is correct: all changes are read-modify-writes of one word, so they have one order. (forget() is a store, but
// only the child of a fork calls it, and that child has no other thread.) A handler first looks at the bit, and goes no
// further if the object is closed. Then it counts itself and reads the bit again, in one step. If that step comes
// before close(), the owner sees the handler counted, and waits for its leave(). If the step comes after close(), the
// handler sees the object closed, and does not touch it. Because of the first look, only handlers that looked before
// close() can keep the owner waiting, however many signals follow.
// Memory order: [handler-uses] open() releases and enter() acquires, so a handler sees the finished object. leave()
// releases and the owner acquires, so what the owner does next comes after every use.
// Only the owner waits, never a handler. So a handler may interrupt the owner anywhere.
// Checked by: tests/model/handler_uses_model_test.cpp (P21 of docs/proofs.md).
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::platform {

class handler_uses {
public:
    constexpr handler_uses() noexcept = default;

    // The owner: no handler uses the object before this call.
    void open() noexcept {
        word_.fetch_or(is_open, std::memory_order_release);  // [handler-uses]
    }
    // The owner: no handler that begins after this call uses the object.
    void close() noexcept {
        word_.fetch_and(~is_open, std::memory_order_relaxed);  // no order: unused() has it
    }
    // The owner, after close(): whether no handler uses the object any more.
    bool unused() const noexcept {
        return word_.load(std::memory_order_acquire) == 0;  // [handler-uses]
    }
    // Called in the child of a fork, whose only thread is not between enter() and leave().
    void forget() noexcept {
        word_.store(0, std::memory_order_relaxed);  // no order: one thread
    }

    // Called by a handler. If it returns true, the handler may use the object until it calls leave().
    bool enter() noexcept {
        const std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: a hint
        if ((seen & is_open) == 0) return false;
        const std::uint32_t before = word_.fetch_add(1, std::memory_order_acquire);  // [handler-uses]
        if ((before & is_open) != 0) return true;
        leave();
        return false;
    }
    void leave() noexcept {
        word_.fetch_sub(1, std::memory_order_release);  // [handler-uses]
    }

private:
    static constexpr std::uint32_t is_open = 1u << 31;

    detail::atomic<std::uint32_t> word_{0};
};

}  // namespace tocsin::platform
