// SPDX-License-Identifier: Apache-2.0
// A wait that, once begun, blocks no thread. Why it is correct: pending.cpp.
#pragma once

#include "core/async/poll_thread.hpp"
#include "core/async/timer_thread.hpp"
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/source_list.hpp"

#include <tocsin/detail/pending.hpp>
#include <tocsin/detail/stop_callback.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

namespace tocsin::detail {

using core::claim;
using core::multi_wait;
using core::wait_slot;

// Checked builds end the program with this message.
inline constexpr const char* destroyed_too_early =
    "tocsin: an operation was destroyed while another thread was ending its wait\n";

class pending_wait final : public core::resumable {
public:
    // `memory` has wait_memory_size(what.traits_.needs) bytes, for this object first and then for its other parts.
    // Whoever ends the wait calls `run(what.given_.who)`.
    pending_wait(pending_base& what, void (*run)(void* who) noexcept, void* memory) noexcept
        : resumable(released),
          base_(what),
          run_(run),
          wait_(what.sources_, what.traits_.all ? multi_wait::mode::all : multi_wait::mode::any,
                empty_slots(what), what.storage_.buckets, this) {
        auto* const behind = static_cast<std::byte*>(memory) + wait_core_size;
        if (what.traits_.needs >= wait_needs::limits) limits_ = ::new (behind) limited(*this);
        if (what.traits_.needs >= wait_needs::mixture)
            mixture_ = ::new (behind + wait_limits_size) mixture(*this);
    }
    ~pending_wait() {
        if (!over_) abandon();
        if (mixture_ != nullptr) mixture_->~mixture();
        if (limits_ != nullptr) limits_->~limited();
        std::destroy_n(static_cast<wait_slot*>(base_.storage_.slots), base_.sources_.size());
    }

    // `by` serves the wait's deadlines and descriptors. If `by` is null, the default service does. Throws what
    // timer::start() and poll_request::set() throw.
    multi_wait::progress begin(core::service* by);
    // Returns false if the wait has ended. After true, the wait belongs to whoever ends it (pending-1).
    bool suspend() noexcept;
    // Called if the wait has ended before it was suspended. Does what the end of a suspended wait does.
    void end_here() noexcept;
    // Claims the wait as stopped, and returns true, if nothing else has claimed it. Then end_stopped() must follow.
    bool try_stop() noexcept { return is_of_this_process() && wait_.self.try_claim(claim::stopped); }
    void end_stopped() noexcept { wait_.self.release(nullptr); }

    // False in the child of a fork, if the wait began in the parent.
    bool is_of_this_process() const noexcept { return process_.is_of_this_process(); }

    // Called once, by what the wait was given to run: the coroutine, or the end of the operation.
    void finish() noexcept;
    // After finish(). If `error` is null, throws if the poll has failed, or has found a descriptor that is not open. If
    // `error` is not null, stores the system's error number in `*error` instead.
    any_result result(int* error) const;

private:
    struct end final : core::timer {
        explicit end(pending_wait& of) noexcept : self(of) {}
        bool claim() noexcept override { return self.wait_.self.try_claim(core::claim::timed_out); }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        pending_wait& self;
    };
    // All timers of one kind among the sources of a wait for all. This one timer is due when the last of them is.
    struct timers final : core::timer {
        timers(pending_wait& of, core::timers which) noexcept : self(of), kind(which) {}
        const deadline* last() const noexcept { return core::last_timer(self.base_.sources_, kind); }
        std::uint32_t count() const noexcept { return core::count_timers(self.base_.sources_, kind); }
        bool claim() noexcept override {
            if (const deadline* const later = last()) {
                postpone(*later);
                return false;
            }
            self.wait_.notify_timers(count());
            return true;
        }
        void run() noexcept override { self.wait_.wake_notified(); }
        pending_wait& self;
        const core::timers kind;
    };
    struct descriptors final : core::poll_request {
        explicit descriptors(pending_wait& of) noexcept : self(of) {}
        bool claim() noexcept override {
            const core::found_source found = self.mixture_->polled.first();
            if (found) return self.wait_.self.try_claim(core::claim::signaled, found.index);
            return has_failed = self.wait_.self.try_claim(core::claim::timed_out);
        }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        pending_wait& self;
        bool has_failed = false;  // the poll has failed, and that ended the wait
    };
    struct stopper {
        void operator()() const noexcept { self.wait_.self.stop(); }
        pending_wait& self;
    };

    struct limited {
        explicit limited(pending_wait& of) noexcept : until(of) {}
        end until;
        std::optional<sound_stop_callback<stopper>> stop;
    };
    struct mixture {
        explicit mixture(pending_wait& of) noexcept
            : first(of.base_.sources_, of.base_.until_),
              polled(of.base_.sources_, static_cast<platform::poll_entry*>(of.base_.storage_.descriptors)),
              all_timers{{of, core::timers::of_system_clock}, {of, core::timers::of_others}},
              request(of) {}
        const core::latest_end first;
        core::descriptors polled;
        timers all_timers[2];
        descriptors request;
        core::diagnosed_sleep shown;  // while descriptors are watched
    };

    static wait_slot* empty_slots(const pending_base& what) noexcept;
    static void released(resumable& self) noexcept;
    void hand_over() noexcept;
    void run_here() noexcept;
    // When a wait for any ends at the latest: at its deadline, or at the first of its timers.
    const deadline& first() const noexcept {
        return mixture_ != nullptr ? mixture_->first.when() : base_.until_;
    }
    bool has_executor() const noexcept { return base_.executor_.object != nullptr; }
    void abandon() noexcept;
    void give_back() noexcept;
    void take_back() noexcept;
    any_result found(int* error) const;
    any_result failed(int* error, int by, std::size_t culprit) const;

    pending_base& base_;
    void (*const run_)(void* who) noexcept;
    const core::process_stamp process_;
    plain<bool> suspended_{false};
    bool over_ = false;
    limited* limits_ = nullptr;   // null: the wait has none
    mixture* mixture_ = nullptr;  // null: no source is a timer or a descriptor
    multi_wait wait_;

public:
    static constexpr bool fits = sizeof(limited) <= wait_limits_size && sizeof(mixture) <= wait_mixture_size;
};

}  // namespace tocsin::detail
