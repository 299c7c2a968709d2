// SPDX-License-Identifier: Apache-2.0
// A wait for an object that blocks no thread: an operation (include/tocsin/operation.hpp) in a block of memory.
// Registered waits and the waits of CreateThreadpoolWait() are built on it.
//
// State: whoever started the wait, and the operation, have a reference each, the latter while the operation waits. So
// the operation exists until its function has been called, and during every cancel().
//
// A wait that ends gives the object to its owner, which then owes a callback. If cancel() returns true, the wait has
// taken nothing, and will take nothing. So nothing ever has to be given back, and no signal is lost or late.
#pragma once

#include "wait.hpp"

#include <tocsin/operation.hpp>

#include <atomic>
#include <cstddef>
#include <memory>

namespace tocsin::win32 {

class object_wait : public counted<object_wait> {
public:
    // Calls `ended(context, how)` once for each start(). If the system refused to wait, and if cancel() ended the wait,
    // `how` says stopped. Throws std::bad_alloc.
    using function = void (*)(void* context, wait_status how) noexcept;
    object_wait(object& what, function ended, void* context) : ended_(ended), context_(context) {
        const source only = source_of(what);
        memory_ = std::make_unique<std::byte[]>(operation_size(1));
        wait_ = &span_operation::make(memory_.get(), false, {&only, 1}, {}, called, this);
    }
    object_wait(const object_wait&) = delete;
    object_wait& operator=(const object_wait&) = delete;

    // The wait must be idle. False: it could not begin, and the function is not called. The error says why.
    bool start(const deadline& until) noexcept {
        keep();  // the operation's
        const DWORD begun = caught([&] {
            wait_->on(inline_executor).start(limits{.until = until});
            return WAIT_OBJECT_0;
        });
        if (begun == WAIT_OBJECT_0) return true;
        drop();
        return false;
    }
    // True: this call has ended the wait. The function has been called with `stopped`, or is about to be.
    bool cancel() noexcept { return wait_->cancel(); }

private:
    friend class counted<object_wait>;
    ~object_wait() { std::destroy_at(wait_); }

    static void called(void* self, const any_result& how) noexcept {
        auto& me = *static_cast<object_wait*>(self);
        me.ended_(me.context_, me.wait_->error() != 0 ? wait_status::stopped : how.status);
        me.drop();
    }

    const function ended_;
    void* const context_;
    std::unique_ptr<std::byte[]> memory_;
    span_operation* wait_ = nullptr;
};

}  // namespace tocsin::win32
