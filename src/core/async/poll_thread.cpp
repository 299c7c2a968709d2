// SPDX-License-Identifier: Apache-2.0
// One thread polls the descriptors of all asynchronous waits that no driver serves.
//
// State
//   A list holds the requests. One thread makes a table of all their descriptors from the list, and polls that table.
//   The thread starts when it is first needed and lives as long as the process.
//
// Invariants
//   poll_thread-1  The list is touched only under the lock. So is the table, except while the thread polls: then only
//       the thread touches it. The table names no request. To find the requests that a result concerns, the thread goes
//       through the list.
//   poll_thread-2  A request is due when a poll has found something for its descriptors, or has failed. (If the poll
//       failed on account of one descriptor, only the requests that name it are due.) A due request leaves the list and
//       is then claimed, both in one critical section. So after cancel(), either the request was claimed before and
//       runs, or nobody will ever claim it.
//   poll_thread-3  Requests run under no lock. All that are due run before any coroutine resumes
//       (core/lot/resume_queue.hpp).
//   poll_thread-4  The thread polls what it saw in the list under the lock. A thread that adds descriptors to the list
//       rings the polling thread's doorbell afterwards.
//   poll_thread-5  After cancel(), the request's descriptors may be closed: the thread no longer polls them for this
//       request. If they are being polled, cancel() rings the doorbell, and returns when the poll under way has ended.
//       Once that poll has ended, the operating system no longer keeps the descriptors open or tied to the poll.
//       The polling thread notes the beginning and the end of each poll under the lock. A thread that has to wait in
//       cancel() counts itself under the lock. After a poll, the polling thread wakes as many threads as have counted
//       themselves. If the polling thread itself calls cancel(), it does so between its polls, and does not wait. Nor
//       does a thread wait once the other threads are gone at the exit of the process (Windows).
//
// No lost wake-up: a ring ends the poll under way. If no poll is under way, the ring ends the next one at once
// (platform/poller/poller.hpp).
//
// Locks: no thread takes another lock while it holds the lock of this file. No thread takes this lock while it holds a
// lock of the lot.
//
// Exit and fork: nothing is destroyed, so the thread may keep running while the process exits. The child of a fork has
// no requests and no thread. Both begin again there.
//
// Several copies of the library in a process: each has a thread of its own. A copy that has started its thread can't be
// unloaded.
//
// Memory order: the lock orders everything. The count of polls is a futex, and only its value matters: nothing else is
// published through it.
//
// Checked by: tests/model/poll_request_model_test.cpp (P13 of docs/proofs.md), tests/unit/await_test.cpp,
// tests/stress/await_stress_test.cpp.
#include "core/async/poll_thread.hpp"

#include "core/async/background.hpp"
#include "core/sync/futex_lock.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/intrusive_list.hpp>

#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace tocsin::core {

// The table that is polled. It has each descriptor once, however many requests name it. (Some systems let a process
// poll no more descriptors than it may have open.) There are two exceptions:
// - Requests that ask for hang-ups share an entry only with each other, because the system reports more for such an
//   entry.
// - Requests that ask for `signaled` share an entry only with each other, because their descriptor is the number of a
//   kernel HANDLE, not that of a socket.
class polled_table {
public:
    std::span<platform::poll_entry> all() noexcept { return polls_; }
    std::size_t capacity() const noexcept { return polls_.capacity(); }

    void reserve(std::size_t capacity) {
        polls_.reserve(capacity);
        indices_.reserve(capacity);
        buckets_.reserve(2 * capacity);
    }

    // Empties the table, and prepares it for `count` descriptors.
    void clear(std::size_t count) noexcept {
        polls_.clear();
        indices_.clear();
        buckets_.assign(2 * count, none);
    }
    // Adds descriptors, which get consecutive numbers, and returns the first number.
    std::size_t add(std::span<const platform::poll_entry> what) noexcept {
        const std::size_t first = indices_.size();
        for (const platform::poll_entry& each : what) indices_.push_back(index_for(each));
        return first;
    }

    // The index in all() of the entry that is polled for this number.
    std::uint32_t index(std::size_t number) const noexcept { return indices_[number]; }
    // What the poll has found for the descriptor with this number. Several requests may share its entry, so this
    // returns only what concerns a request that has asked for `asked`.
    readiness found(std::size_t number, readiness asked) const noexcept {
        constexpr readiness unasked = readiness::hang_up | readiness::error | readiness::invalid;
        return polls_[indices_[number]].found & (asked | unasked);
    }

private:
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

    std::uint32_t index_for(const platform::poll_entry& one) noexcept {
        constexpr readiness apart = readiness::hang_up | readiness::signaled;
        const readiness kind = one.asked & apart;
        std::size_t bucket = static_cast<std::uint32_t>(one.descriptor) % buckets_.size();
        for (; buckets_[bucket] != none; bucket = (bucket + 1) % buckets_.size()) {
            platform::poll_entry& there = polls_[buckets_[bucket]];
            if (there.descriptor != one.descriptor || (there.asked & apart) != kind) continue;
            there.asked = there.asked | one.asked;
            return buckets_[bucket];
        }
        buckets_[bucket] = static_cast<std::uint32_t>(polls_.size());
        polls_.push_back(one);
        return buckets_[bucket];
    }

    std::vector<platform::poll_entry> polls_;
    std::vector<std::uint32_t> indices_;  // in polls_, by number
    std::vector<std::uint32_t> buckets_;  // indices in polls_ by descriptor; linear probing
};

class poll_thread final : public poll_service {
public:
    void set(poll_request& one) override {
        background_thread::prepare();
        {
            const std::lock_guard guard(lock_);
            take_bell();
            thread_.start(run_the_one, "tocsin: can't start the thread that polls descriptors");
            const std::size_t more = descriptors_ + one.what_.size();
            if (more > capacity_) grow(2 * more);
            one.is_set_ = true;
            requests_.append(one);
            descriptors_ = more;
            changed_ = true;
        }
        platform::poller::ring_doorbell(bell_);
    }

    void cancel(poll_request& one) noexcept override {
        std::unique_lock guard(lock_);
        if (!one.is_set_) return;
        const bool is_polled = is_polling_ && one.is_polled_;
        remove(one);
        if (!is_polled || platform::other_threads_are_gone()) return;
        ++cancelers_;
        const std::uint32_t poll = polls_.load(std::memory_order_relaxed);  // no order: under the lock
        guard.unlock();
        platform::poller::ring_doorbell(bell_);
        for (guard.lock(); polls_.load(std::memory_order_relaxed) == poll;  // no order: under the lock
             guard.lock()) {
            guard.unlock();
            (void)platform::futex::wait(polls_, poll, deadline::never());
        }
    }

    void run() noexcept {
        for (;;) {
            {
                const std::lock_guard guard(lock_);
                if (std::exchange(changed_, false)) rebuild();
                is_polling_ = true;
            }
            const auto result = platform::poller::poll(polled_.all(), bell_, deadline::never());
            due_calls due;
            std::size_t cancelers;
            {
                const std::lock_guard guard(lock_);
                is_polling_ = false;
                polls_.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock
                cancelers = std::exchange(cancelers_, 0);
                if (result.ready != 0 || result.error != 0) take_due(due, result);
            }
            for (; cancelers != 0; --cancelers) platform::futex::wake_one(&polls_);
            (void)due.run(thread_.makers_signals());
        }
    }

private:
    static void run_the_one() noexcept;

    void take_bell() {
        if (bell_ != platform::no_doorbell) return;
        const auto taken = platform::poller::take_doorbell();
        if (taken.error != 0) {
            detail::throw_or_die(
                std::system_error(taken.error, platform::error_category(), "tocsin: can't open a doorbell"));
        }
        bell_ = taken.id;
    }

    // Called by a thread that adds a request. Allocates the memory for a larger table, so that the polling thread need
    // not do it.
    void grow(std::size_t capacity) {
        polled_table larger;
        larger.reserve(capacity);
        larger_ = std::move(larger);
        capacity_ = capacity;
    }

    void rebuild() noexcept {
        if (larger_.capacity() > polled_.capacity()) polled_ = std::exchange(larger_, {});
        polled_.clear(descriptors_);
        for (poll_request* each = requests_.first(); each != nullptr; each = requests_.next(*each)) {
            each->number_ = polled_.add(each->what_);
            each->is_polled_ = true;
        }
    }

    void take_due(due_calls& due, const platform::poll_result& result) noexcept {
        for (poll_request *each = requests_.first(), *next = nullptr; each != nullptr; each = next) {
            next = requests_.next(*each);
            if (!each->is_polled_ || !note_result(*each, result)) continue;
            remove(*each);
            due.claim(*each);
        }
    }

    // Notes in the request what was found, and returns whether the request is due. An error of one descriptor ends the
    // requests that name it. Any other error ends all requests.
    bool note_result(poll_request& one, const platform::poll_result& result) const noexcept {
        bool due = result.error != 0 && result.culprit == platform::no_culprit;
        for (std::size_t i = 0; i != one.what_.size(); ++i) {
            const std::size_t number = one.number_ + i;
            readiness& found = one.what_[i].found;
            found = result.error == 0 ? polled_.found(number, one.what_[i].asked) : readiness::none;
            due |= found != readiness::none;
            if (result.error == 0 || result.culprit != polled_.index(number)) continue;
            one.culprit_ = i;
            due = true;
        }
        if (due) one.error_ = result.error;
        return due;
    }

    void remove(poll_request& one) noexcept {
        one.is_set_ = one.is_polled_ = false;
        requests_.remove(one);
        descriptors_ -= one.what_.size();
        changed_ = true;
    }

    futex_lock lock_;
    background_thread thread_;
    detail::plain<bool> changed_{false};  // whether the list has changed since the table was made of it
    detail::plain<bool> is_polling_{false};
    platform::doorbell_id bell_ = platform::no_doorbell;
    detail::intrusive_list<poll_request> requests_;
    detail::plain<std::size_t> descriptors_{0};  // of all requests; may count one several times
    detail::plain<std::size_t> capacity_{0};
    polled_table polled_;
    polled_table larger_;
    detail::plain<std::size_t> cancelers_{0};  // threads that wait for the end of the poll under way
    platform::futex_word polls_{0};            // how many polls have ended
};

namespace {

constinit detail::never_destroyed<poll_thread> thread;

const in_child renews_thread(child_duty::poll_thread, renew<thread>);

}  // namespace

void poll_thread::run_the_one() noexcept { thread.it.run(); }

void poll_request::set(std::span<platform::poll_entry> what, service* by) {
    what_ = what;
    poll_service& chosen = by != nullptr ? static_cast<poll_service&>(*by) : thread.it;
    chosen.set(*this);
    by_ = &chosen;
}

void poll_request::cancel() noexcept {
    if (poll_service* const by = std::exchange(by_, nullptr)) by->cancel(*this);
}

}  // namespace tocsin::core
