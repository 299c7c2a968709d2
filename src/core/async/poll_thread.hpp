// Descriptors for which coroutines wait. Why it is correct: poll_thread.cpp.
#pragma once

#include "core/async/completion.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <cstddef>
#include <span>

namespace tocsin::core {

// One thread polls the descriptors of all requests.
class poll_request : public completion, public detail::list_links<poll_request> {
public:
    // Starts the thread if it isn't running. Throws std::system_error, or std::bad_alloc if it needs more memory than
    // any call before.
    void set(std::span<platform::poll_entry> what);
    // Afterwards the descriptors may be closed. Costs a switch to the polling thread and back, unless the request has
    // already been claimed.
    void cancel() noexcept;

    // The error of the poll that ended the request, and the index of the descriptor that caused it, if one did.
    int error() const noexcept { return error_; }
    std::size_t culprit() const noexcept { return culprit_; }

private:
    friend class poll_thread;

    std::span<platform::poll_entry> what_;
    int error_ = 0;
    std::size_t culprit_ = platform::no_culprit;
    bool is_set_ = false;
    bool is_polled_ = false;
    std::size_t number_ = 0;  // its first descriptor's number in the polled table, if `is_polled_`
};

}  // namespace tocsin::core
