// SPDX-License-Identifier: Apache-2.0
// A model thread's own stack, and the switch from one such stack to another.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define TOCSIN_MODEL_UCONTEXT 1
#endif

namespace tocsin::model {

class fiber {
public:
    using entry = void (*)(void* argument);

    fiber() = default;  // the caller's stack, to switch back to
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    // The next switch to this fiber calls `start(argument)`, which must not return. The previous content of the
    // stack is discarded. The stack is allocated once and keeps its address, so that runs are repeatable.
    void prepare(entry start, void* argument);

    // Leaves `from`, which must be the running fiber.
    static void switch_from(fiber& from, fiber& to) noexcept;

private:
    static void first_frame() noexcept;

    static constexpr std::size_t stack_bytes = 256 * 1024;

    void* stack_ = nullptr;
    void* pointer_ = nullptr;     // saved stack pointer
    void* exceptions_[2] = {};    // the C++ runtime's state of this thread's exceptions
    void* fake_stack_ = nullptr;  // the address sanitizer's
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
    entry start_ = nullptr;
    void* argument_ = nullptr;
#if defined(TOCSIN_MODEL_UCONTEXT)
    ucontext_t context_{};
#endif
};

}  // namespace tocsin::model
