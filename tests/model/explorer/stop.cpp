// SPDX-License-Identifier: Apache-2.0
#include "atomic.hpp"
#include "futex.hpp"

namespace tocsin::model::detail {

namespace {
constexpr std::uint32_t requested_bit = 1;
constexpr std::uint32_t one_operation = 2;
constexpr unsigned everybody = ~0u;
}  // namespace

// In a real implementation the reference count orders the last release after the others. The model leaves that out.
stop_state::~stop_state() {
    if (exploring) {
        forgotten(&word_, sizeof word_);
        constructed(&word_, sizeof word_, 0);
    }
}

void stop_state::unlink(stop_callback_base& c) noexcept {
    (c.previous ? c.previous->next : first_) = c.next;
    (c.next ? c.next->previous : last_) = c.previous;
    c.next = c.previous = nullptr;
    c.listed = false;
}

bool stop_state::enlist(stop_callback_base& c) noexcept {
    if (word_.fetch_add(one_operation, std::memory_order_acq_rel) & requested_bit) return false;
    c.previous = last_;
    (last_ ? last_->next : first_) = &c;
    last_ = &c;
    c.listed = true;
    return true;
}

bool stop_state::request() noexcept {
    if (word_.fetch_or(requested_bit, std::memory_order_acq_rel) & requested_bit) return false;
    retain();  // a callback may drop what this was called through
    requester_ = this_thread();
    while (stop_callback_base* const c = first_) {
        unlink(*c);
        bool gone = false;
        c->gone = &gone;
        c->run();
        if (!gone) {
            c->gone = nullptr;
            const void* const address = &c->finished;
            c->finished.store(1, std::memory_order_release);
            futex_wake(address, 1);  // the callback may be gone by now
            if (waits_in_two_steps::count != 0) futex_wake(&repeated_wakes, everybody);
        }
        word_.fetch_add(one_operation, std::memory_order_acq_rel);
    }
    release();
    return true;
}

void stop_state::delist(stop_callback_base& c) noexcept {
    word_.fetch_add(one_operation, std::memory_order_acq_rel);
    if (c.listed) {
        unlink(c);
        return;
    }
    if (requester_ == this_thread()) {
        if (c.gone) *c.gone = true;  // destroyed by its own call
        return;
    }
    while (c.finished.load(std::memory_order_acquire) == 0) {
        if (waits_in_two_steps::count == 0 || repeated_wakes.load(std::memory_order_relaxed) != 0) {
            futex_wait(&c.finished, 0);
        } else {
            futex_wait(&repeated_wakes, 0);  // the end of the callback does not change this word
        }
    }
}

}  // namespace tocsin::model::detail

namespace tocsin::model {

void begin_repeated_wakes() noexcept {
    repeated_wakes.fetch_add(1, std::memory_order_relaxed);
    futex_wake(&repeated_wakes, detail::everybody);
}

void end_repeated_wakes() noexcept { repeated_wakes.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace tocsin::model
