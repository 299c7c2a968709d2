// SPDX-License-Identifier: Apache-2.0
// swapcontext would do, but it makes two system calls for the signal mask. A run of a small test makes dozens of
// switches in ten microseconds.
#include "fiber.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <cxxabi.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define TOCSIN_MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOCSIN_MODEL_ASAN 1
#endif
#endif
#if defined(TOCSIN_MODEL_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
extern "C" void tocsin_model_switch(void** save, void* load) noexcept;
asm(R"(
    .text
    .p2align 4
    .globl tocsin_model_switch
    .type tocsin_model_switch, @function
tocsin_model_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size tocsin_model_switch, .-tocsin_model_switch
)");
#elif defined(__aarch64__)
extern "C" void tocsin_model_switch(void** save, void* load) noexcept;
asm(R"(
    .text
    .p2align 4
    .globl tocsin_model_switch
tocsin_model_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#endif

namespace tocsin::model {

namespace {

fiber* entering = nullptr;  // the fiber that first_frame() starts
fiber* leaving = nullptr;   // the fiber that switched to it

}  // namespace

fiber::~fiber() {
    if (stack_ != nullptr) munmap(stack_, stack_bytes);
}

void fiber::prepare(entry start, void* argument) {
    if (stack_ == nullptr) {
        stack_ = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack_ == MAP_FAILED) std::abort();
        mprotect(stack_, 4096, PROT_NONE);  // an overflow faults instead of corrupting a neighbour
        bottom_ = static_cast<char*>(stack_) + 4096;
        size_ = stack_bytes - 4096;
    }
#if defined(TOCSIN_MODEL_ASAN)
    __asan_unpoison_memory_region(bottom_, size_);
#endif
    start_ = start;
    argument_ = argument;
    fake_stack_ = nullptr;
    exceptions_[0] = exceptions_[1] = nullptr;
#if defined(TOCSIN_MODEL_UCONTEXT)
    getcontext(&context_);
    context_.uc_stack.ss_sp = const_cast<void*>(bottom_);
    context_.uc_stack.ss_size = size_;
    context_.uc_link = nullptr;
    makecontext(&context_, reinterpret_cast<void (*)()>(&fiber::first_frame), 0);
#else
    auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(stack_) + stack_bytes);
#if defined(__x86_64__)
    // Six registers, the return address, and one word so that the stack is aligned as after a call.
    std::uintptr_t* frame = top - 8;
    std::memset(frame, 0, 8 * sizeof *frame);
    frame[6] = reinterpret_cast<std::uintptr_t>(&fiber::first_frame);
#else
    std::uintptr_t* frame = top - 20;
    std::memset(frame, 0, 20 * sizeof *frame);
    frame[11] = reinterpret_cast<std::uintptr_t>(&fiber::first_frame);
#endif
    pointer_ = frame;
#endif
}

void fiber::first_frame() noexcept {
    fiber& self = *entering;
#if defined(TOCSIN_MODEL_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &leaving->bottom_, &leaving->size_);
#endif
    self.start_(self.argument_);
    std::abort();
}

void fiber::switch_from(fiber& from, fiber& to) noexcept {
    entering = &to;
    leaving = &from;
    // The runtime keeps the exceptions being handled per system thread, but each fiber needs its own.
    void* const runtime = abi::__cxa_get_globals();
    std::memcpy(from.exceptions_, runtime, sizeof from.exceptions_);
    std::memcpy(runtime, to.exceptions_, sizeof to.exceptions_);
#if defined(TOCSIN_MODEL_ASAN)
    __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
#if defined(TOCSIN_MODEL_UCONTEXT)
    swapcontext(&from.context_, &to.context_);
#else
    tocsin_model_switch(&from.pointer_, to.pointer_);
#endif
#if defined(TOCSIN_MODEL_ASAN)
    __sanitizer_finish_switch_fiber(from.fake_stack_, &leaving->bottom_, &leaving->size_);
#endif
}

}  // namespace tocsin::model
