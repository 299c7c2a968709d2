// SPDX-License-Identifier: Apache-2.0
// The descriptors that asynchronous waits wait for. Why it is correct: poll_thread.cpp.
#pragma once

#include "core/async/due_call.hpp"
#include "core/async/service.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <cstddef>
#include <span>

namespace tocsin::core {

// A request to poll descriptors. One thread of the library polls the descriptors of all requests that no driver serves.
class poll_request : public due_call, public detail::list_links<poll_request> {
public:
    // If `by` is null, the library's thread serves the request, and is started if it isn't running. Throws
    // std::system_error, or std::bad_alloc if the service has to enlarge its memory and can't. The service must exist
    // until cancel().
    void set(std::span<platform::poll_entry> what, service* by = nullptr);
    // Afterwards, nobody claims the request, and the service knows nothing of it. If the library's thread serves the
    // request, the descriptors may then be closed. If that thread is polling them at the moment, cancel() costs a
    // switch to the thread and back.
    void cancel() noexcept;

    std::size_t descriptors() const noexcept { return what_.size(); }

    // The error of the poll that ended the request, and the index of the descriptor that caused it, if one did.
    int error() const noexcept { return error_; }
    std::size_t culprit() const noexcept { return culprit_; }

private:
    friend class poll_thread;
    friend class watch_table;

    poll_service* by_ = nullptr;  // null: not set. Only set() and cancel() use it.
    std::span<platform::poll_entry> what_;
    // These belong to the service, under its lock.
    int error_ = 0;
    bool is_set_ = false;
    bool is_polled_ = false;  // by the library's thread
    bool is_due_ = false;     // by what a driver's loop has found
    std::size_t culprit_ = platform::no_culprit;
    std::size_t number_ =
        0;  // its first descriptor's number in the service's table, if the table has this request
};

}  // namespace tocsin::core
