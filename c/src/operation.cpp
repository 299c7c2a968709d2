// SPDX-License-Identifier: Apache-2.0
// Operations: waits that call a function of C.
//
// The C++ operation is in its own block on the heap, because its size depends on the number of sources. `waits_` says
// whether the operation was started and its function has not been called yet. In C++, the caller must start only an
// idle operation. Here, a second start is an error. When the function is called, the operation is idle, and the
// function may start or destroy it. So call() reads what it needs before it calls the function.
#include "boundary.hpp"
#include "driver.hpp"

#include <tocsin/operation.hpp>

#include <atomic>
#include <new>

using namespace tocsin::c;
using tocsin::span_operation;

namespace tocsin::c {
namespace {

class operation {
public:
    operation(std::span<const tocsin::source> sources, bool all, tocsin_ended function, void* context)
        : function_(function), context_(context), memory_(tocsin::operation_size(sources.size())) {
        operation_ = &span_operation::make(memory_.block, all, sources, {}, call, this);
    }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    ~operation() { operation_->~span_operation(); }

    bool waits() const noexcept { return waits_; }
    bool cancel() noexcept { return operation_->cancel(); }

    // Returns false if the operation waits already.
    bool start(const tocsin::limits& how) {
        if (waits_.exchange(true)) return false;
        idle_if_it_fails undo{this};
        operation_->start(how);
        undo.of = nullptr;
        return true;
    }

    void set_executor(tocsin_executor run, void* run_context) noexcept {
        executor_ = {run, run_context};
        operation_->on(executor_);
    }

    void set_driver(tocsin::driver& by) noexcept { operation_->by(by); }

private:
    struct executor {
        tocsin_executor run = nullptr;
        void* context = nullptr;
        bool operator()(tocsin::ended_operation ended) const noexcept {
            return run != nullptr && run(context, ended.address());
        }
    };
    struct aligned_memory {
        explicit aligned_memory(std::size_t size)
            : block(::operator new(size, std::align_val_t{tocsin::operation_alignment})) {}
        aligned_memory(const aligned_memory&) = delete;
        aligned_memory& operator=(const aligned_memory&) = delete;
        ~aligned_memory() { ::operator delete(block, std::align_val_t{tocsin::operation_alignment}); }
        void* const block;
    };
    // Once start() has succeeded, the operation may be gone.
    struct idle_if_it_fails {
        operation* of;
        ~idle_if_it_fails() {
            if (of != nullptr) of->waits_ = false;
        }
    };

    static void call(void* self, const tocsin::any_result& how) noexcept {
        auto& one = *static_cast<operation*>(self);
        const tocsin_any_result result{how.index, static_cast<std::uint32_t>(how.found)};
        const int error = one.operation_->error();
        const tocsin_status status = error == 0 ? status_of(how.status) : status_of_errno(error);
        const tocsin_ended function = one.function_;
        void* const given = one.context_;
        one.waits_ = false;
        function(given, status, &result);
    }

    const tocsin_ended function_;
    void* const context_;
    std::atomic<bool> waits_{false};
    executor executor_;
    aligned_memory memory_;
    span_operation* operation_;
};

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_operation_init(tocsin_operation* one, const tocsin_source* sources, size_t count,
                                    bool all, tocsin_ended function, void* context) {
    if (object_at<tocsin_operation>(one) != nullptr) one->opaque = nullptr;
    if (function == nullptr) return refuse(__func__, "there is no function to call");
    const source_array list(sources, count, __func__);
    if (list.status() != TOCSIN_OK) return list.status();
    return make_held<operation>(one, __func__, list.all(), all, function, context);
}
tocsin_status tocsin_operation_destroy(tocsin_operation* one) { return destroy_held<operation>(one); }

tocsin_status tocsin_operation_set_executor(tocsin_operation* one, tocsin_executor executor, void* context) {
    return with_held<operation>(one, [=, call = __func__](operation& idle) {
        if (idle.waits()) return refuse(call, "the operation waits", TOCSIN_ERROR_BUSY);
        idle.set_executor(executor, context);
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_operation_set_driver(tocsin_operation* one, tocsin_driver* driver) {
    c_driver* const by = held_at<c_driver>(driver);
    if (by == nullptr) return refuse(__func__, "there is no driver");
    return with_held<operation>(one, [=, call = __func__](operation& idle) {
        if (idle.waits()) return refuse(call, "the operation waits", TOCSIN_ERROR_BUSY);
        idle.set_driver(by->driver);
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_operation_start(tocsin_operation* one, const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with_held<operation>(one, [=, call = __func__](operation& idle) {
        return idle.start(limits_of(how)) ? TOCSIN_OK
                                          : refuse(call, "the operation waits already", TOCSIN_ERROR_BUSY);
    });
}

tocsin_status tocsin_operation_cancel(tocsin_operation* one) {
    return with_held<operation>(one, [](operation& waiting) { return done_if(waiting.cancel()); });
}

void tocsin_operation_run_ended(void* ended) {
    if (ended != nullptr) tocsin::ended_operation::from_address(ended)();
}

}  // extern "C"
