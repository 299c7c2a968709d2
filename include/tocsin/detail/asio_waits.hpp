// SPDX-License-Identifier: Apache-2.0
// Which Asio <tocsin/asio.hpp> uses, and the list of waits that an execution context of it has. asio.hpp undefines the
// macros.
#pragma once

#if !defined(TOCSIN_BOOST_ASIO) && __has_include(<asio/version.hpp>)

#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/error_code.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#if __has_include(<asio/associated_cancellation_slot.hpp>)
#include <asio/associated_cancellation_slot.hpp>
#include <asio/cancellation_type.hpp>
#define TOCSIN_ASIO_HAS_SLOTS 1
#endif
#define TOCSIN_ASIO_FLAVOR standalone
#define TOCSIN_ASIO_FOUND ::asio

#else

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/error_code.hpp>
#if __has_include(<boost/asio/associated_cancellation_slot.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#define TOCSIN_ASIO_HAS_SLOTS 1
#endif
#define TOCSIN_ASIO_FLAVOR with_boost
#define TOCSIN_ASIO_FOUND ::boost::asio

#endif

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace tocsin::asio {
inline namespace TOCSIN_ASIO_FLAVOR {
namespace detail {

namespace net = TOCSIN_ASIO_FOUND;
using error_code = decltype(net::error::make_error_code(net::error::operation_aborted));

// A wait that an execution context knows.
class known_wait {
public:
    known_wait() noexcept = default;
    known_wait(const known_wait&) = delete;
    known_wait& operator=(const known_wait&) = delete;

protected:
    virtual ~known_wait() = default;

private:
    friend class known_waits;

    virtual void cancel() noexcept = 0;
    virtual void discard() noexcept = 0;  // destroys it, with its handler

    known_wait* before_ = nullptr;
    known_wait* after_ = nullptr;
    bool is_discarded_ = false;  // by shutdown()
    bool has_ended_ = false;     // if it is to be discarded: its end is over
};

// The pending waits of an execution context, as a service of it. A wait leaves the list in two steps, around the post()
// of its handler, so that the context still exists during this post(). When the context is shut down, the service
// cancels the waits that are still in the list, waits until each has ended, and destroys them.
class known_waits final : public net::execution_context::service {
public:
    using key_type = known_waits;
    static inline net::execution_context::id id;

    explicit known_waits(net::execution_context& of) : service(of) {}

    void enter(known_wait& what) noexcept {
        const std::lock_guard lock(mutex_);
        what.after_ = first_;
        if (first_ != nullptr) first_->before_ = &what;
        first_ = &what;
    }
    // Returns false if shutdown() is about to discard the wait, which the caller must then not touch.
    bool begin_leaving(known_wait& what) noexcept {
        const std::lock_guard lock(mutex_);
        if (what.is_discarded_) {
            what.has_ended_ = true;
            changed_.notify_all();
            return false;
        }
        remove(what);
        ++leaving_;
        return true;
    }
    void end_leaving() noexcept {
        const std::lock_guard lock(mutex_);
        if (--leaving_ == 0) changed_.notify_all();
    }

private:
    void remove(known_wait& what) noexcept {
        (what.before_ != nullptr ? what.before_->after_ : first_) = what.after_;
        if (what.after_ != nullptr) what.after_->before_ = what.before_;
    }
    void shutdown() noexcept override {
        std::unique_lock lock(mutex_);
        while (first_ != nullptr) {
            known_wait& next = *first_;
            remove(next);
            next.is_discarded_ = true;
            lock.unlock();
            next.cancel();
            lock.lock();
            changed_.wait(lock, [&] { return next.has_ended_; });
            lock.unlock();
            next.discard();
            lock.lock();
        }
        changed_.wait(lock, [this] { return leaving_ == 0; });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    known_wait* first_ = nullptr;
    std::size_t leaving_ = 0;
};

}  // namespace detail
}  // namespace TOCSIN_ASIO_FLAVOR
}  // namespace tocsin::asio
