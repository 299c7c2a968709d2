// State
//   For each of the two clocks that can't be translated into each other a heap of alarms, the earliest on top, and a
//   thread that sleeps until then. (An alarm on a clock of the user's is one on the steady clock at its estimated
//   end, and asked again when that comes.) For descriptors a list of watches, and a thread that polls them all.
//   Each thread starts when it is needed first, and stays for the life of the process.
//
// Invariants
//   A1  Heap, list and table are touched under their own lock only; but what is polled is the thread's own while it
//       polls: nobody writes there, and a watch that leaves meanwhile takes its name off the table.
//   A2  An errand that is due leaves heap or list first; it is claimed under the same lock. So after cancel() it is
//       claimed already, and will be acted on, or never will be.
//   A3  Acts run under no lock, and all that are due are acted on before any coroutine runs (resumption.hpp).
//   A4  A thread sleeps on what it has seen under the lock: whoever puts something earlier there, or any descriptor,
//       changes its word or rings its bell afterwards.
//
// Locks: no other lock is taken under those of this file, nor is one of them taken under a lock of the lot.
//
// Exit and fork: nothing is destroyed, so that threads may go on at exit. In the child of a fork there is nothing to
// watch and no thread; both begin anew.
//
// Several copies of the library each have their own threads; a copy that has any can't be unloaded.
//
// Memory order: everything is ordered by the locks; the word of a clock is a futex, and its value counts.
//
// Checked by: tests/unit/await_test.cpp, tests/stress/await_stress_test.cpp.
#include "core/service.hpp"

#include "core/bucket_lock.hpp"
#include "core/resumption.hpp"
#include "platform/futex.hpp"
#include "platform/system.hpp"

#include <tocsin/detail/refuse.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace tocsin::core {

// Those that are due.
class errands {
public:
    void claim(errand& due) noexcept {
        if (!due.claim()) return;
        due.next_due_ = nullptr;
        (first_ != nullptr ? last_->next_due_ : first_) = &due;
        last_ = &due;
    }

    // True if there were any.
    bool act() noexcept {
        const resuming_later after_all;
        const bool any = first_ != nullptr;
        while (errand* const each = first_) {
            first_ = each->next_due_;  // before the act, after which it may be gone
            each->act();
        }
        return any;
    }

private:
    errand* first_ = nullptr;
    errand* last_ = nullptr;
};

// A pairing heap.
class alarm_heap {
public:
    alarm* earliest() const noexcept { return root_; }

    void insert(alarm& one) noexcept {
        one.child_ = one.next_ = one.previous_ = nullptr;
        root_ = meld(root_, &one);
    }

    void remove(alarm& one) noexcept {
        alarm* const below = meld_all(std::exchange(one.child_, nullptr));
        if (&one == root_) {
            root_ = below;
            return;
        }
        (one.previous_->child_ == &one ? one.previous_->child_ : one.previous_->next_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        root_ = meld(root_, below);
    }

private:
    static alarm* meld(alarm* a, alarm* b) noexcept {
        if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
        if (b->key_ < a->key_) std::swap(a, b);
        b->next_ = a->child_;
        if (b->next_ != nullptr) b->next_->previous_ = b;
        b->previous_ = a;
        a->child_ = b;
        return a;
    }

    // Siblings: in pairs from the left, and the pairs from the right.
    static alarm* meld_all(alarm* first) noexcept {
        alarm* pairs = nullptr;
        while (first != nullptr) {
            alarm* const second = std::exchange(first->next_, nullptr);
            alarm* const rest = second != nullptr ? std::exchange(second->next_, nullptr) : nullptr;
            alarm* const pair = meld(first, second);
            pair->next_ = std::exchange(pairs, pair);
            first = rest;
        }
        alarm* all = nullptr;
        while (pairs != nullptr) {
            alarm* const next = std::exchange(pairs->next_, nullptr);
            all = meld(all, pairs);
            pairs = next;
        }
        if (all != nullptr) all->previous_ = nullptr;
        return all;
    }

    alarm* root_ = nullptr;
};

namespace {

void start_once(bool& started, void (*body)() noexcept) {
    if (started) return;
    if (const int error = platform::start_thread(body); error != 0) {
        detail::throw_or_die(std::system_error(error, platform::error_category(),
                                               "tocsin: no thread to watch for coroutines"));
    }
    started = true;
}

}  // namespace

class alarm_clock {
public:
    void start(void (*body)() noexcept) {
        const std::lock_guard held(lock_);
        start_once(started_, body);
    }

    void set(alarm& one) noexcept {
        {
            const std::lock_guard held(lock_);
            put(one);
            if (heap_.earliest() != &one) return;
            changed_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock's (A4)
        }
        platform::futex_wake_one(&changed_);
    }

    void cancel(alarm& one) noexcept {
        const std::lock_guard held(lock_);
        if (std::exchange(one.is_set_, false)) heap_.remove(one);
    }

    void run(bool steady) noexcept {
        for (;;) {
            errands due;
            std::uint32_t seen;
            deadline next = deadline::never();
            {
                const std::lock_guard held(lock_);
                take_due(due);
                seen = changed_.load(std::memory_order_relaxed);  // no order: the lock's (A4)
                if (const alarm* const earliest = heap_.earliest()) next = at(earliest->key_, steady);
            }
            if (!due.act()) (void)platform::futex_wait(changed_, seen, next);
        }
    }

private:
    static deadline at(std::int64_t key, bool steady) noexcept {
        const std::chrono::nanoseconds since(key);
        using std::chrono::steady_clock;
        using std::chrono::system_clock;
        using in_nanoseconds = std::chrono::time_point<system_clock, std::chrono::nanoseconds>;
        return steady ? deadline(steady_clock::time_point(since)) : deadline(in_nanoseconds(since));
    }

    static std::int64_t key_of(const deadline& when) noexcept {
        using clock = deadline::clock;
        if (when.which() == clock::steady || when.which() == clock::system) return when.nanoseconds();
        const std::int64_t now =
            std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
        return now + std::min(when.remaining(), std::numeric_limits<std::int64_t>::max() - now);
    }

    void put(alarm& one) noexcept {
        one.key_ = key_of(one.when_);
        one.is_set_ = true;
        heap_.insert(one);
    }

    void take_due(errands& due) noexcept {
        while (alarm* const earliest = heap_.earliest()) {
            const bool estimated = earliest->when_.which() == deadline::clock::other;
            if (!(estimated ? at(earliest->key_, true) : earliest->when_).has_passed()) return;
            heap_.remove(*earliest);
            earliest->is_set_ = false;
            if (earliest->when_.has_passed()) {
                due.claim(*earliest);
            } else {
                put(*earliest);
            }
        }
    }

    bucket_lock lock_;
    alarm_heap heap_;
    platform::futex_word changed_{0};
    bool started_ = false;
};

class descriptor_watch {
public:
    void set(watch& one, std::span<platform::pollable> what, void (*body)() noexcept) {
        {
            const std::lock_guard held(lock_);
            take_bell();
            start_once(started_, body);
            if (watched_ + what.size() > room_) grow(2 * (watched_ + what.size()));
            one.what_ = what;
            one.is_set_ = true;
            one.previous_ = nullptr;
            one.next_ = std::exchange(first_, &one);
            if (one.next_ != nullptr) one.next_->previous_ = &one;
            watched_ += what.size();
            changed_ = true;
        }
        platform::ring_doorbell(bell_);
    }

    // The thread need not be woken: it notices when it next wakes.
    void cancel(watch& one) noexcept {
        const std::lock_guard held(lock_);
        if (one.is_set_) unlink(one);
    }

    void run() noexcept {
        for (;;) {
            {
                const std::lock_guard held(lock_);
                if (std::exchange(changed_, false)) rebuild();
            }
            const auto result = platform::poll(polled_.polls, bell_, deadline::never());
            if (result.ready == 0 && result.error == 0) continue;
            errands due;
            {
                const std::lock_guard held(lock_);
                take_due(due, result.error);
            }
            due.act();
        }
    }

private:
    struct table {
        std::vector<platform::pollable> polls;
        std::vector<watch*> owners;  // null: has left
    };

    void take_bell() {
        if (bell_ != platform::no_doorbell) return;
        const auto taken = platform::take_doorbell();
        if (taken.error != 0) {
            detail::throw_or_die(
                std::system_error(taken.error, platform::error_category(), "tocsin: no doorbell to be had"));
        }
        bell_ = taken.id;
    }

    // Who brings more brings the memory, so that the thread needs none.
    void grow(std::size_t room) {
        table larger;
        larger.polls.reserve(room);
        larger.owners.reserve(room);
        larger_ = std::move(larger);
        room_ = room;
    }

    void rebuild() noexcept {
        if (larger_.polls.capacity() > polled_.polls.capacity()) polled_ = std::exchange(larger_, {});
        polled_.polls.clear();
        polled_.owners.clear();
        for (watch* each = first_; each != nullptr; each = each->next_) {
            each->place_ = polled_.polls.size();
            each->is_polled_ = true;
            polled_.polls.insert(polled_.polls.end(), each->what_.begin(), each->what_.end());
            polled_.owners.insert(polled_.owners.end(), each->what_.size(), each);
        }
    }

    void take_due(errands& due, int error) noexcept {
        for (std::size_t i = 0; i != polled_.polls.size(); ++i) {
            watch* const owner = polled_.owners[i];
            if (owner == nullptr || (error == 0 && polled_.polls[i].found == readiness::none)) continue;
            for (std::size_t j = 0; j != owner->what_.size(); ++j) {
                owner->what_[j].found = polled_.polls[owner->place_ + j].found;
            }
            owner->error_ = error;
            unlink(*owner);
            due.claim(*owner);
        }
    }

    void unlink(watch& one) noexcept {
        one.is_set_ = false;
        (one.previous_ != nullptr ? one.previous_->next_ : first_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        watched_ -= one.what_.size();
        changed_ = true;
        if (!std::exchange(one.is_polled_, false)) return;
        for (std::size_t i = 0; i != one.what_.size(); ++i) polled_.owners[one.place_ + i] = nullptr;
    }

    bucket_lock lock_;
    bool started_ = false;
    bool changed_ = false;
    platform::doorbell_id bell_ = platform::no_doorbell;
    watch* first_ = nullptr;
    std::size_t watched_ = 0;  // descriptors
    std::size_t room_ = 0;
    table polled_;
    table larger_;
};

namespace {

// Never destroyed: the threads go on at exit.
struct everything {
    alarm_clock steady;
    alarm_clock system;
    descriptor_watch descriptors;
};

union forever {
    constexpr forever() noexcept : it() {}
    constexpr ~forever() {}
    everything it;
};

constinit forever service;

struct at_load {
    at_load() noexcept {
        platform::on_fork_in_child([]() noexcept {
            new (&service.it) everything;  // what the parent's tables hold is left alone
        });
    }
};
const at_load start_of_service;

alarm_clock& clock_of(const deadline& when) noexcept {
    return when.which() == deadline::clock::system ? service.it.system : service.it.steady;
}

}  // namespace

void alarm::start(const deadline& when) {
    if (when.is_never()) return;
    const auto run_steady = []() noexcept { service.it.steady.run(true); };
    const auto run_system = []() noexcept { service.it.system.run(false); };
    const bool system = when.which() == deadline::clock::system;
    clock_of(when).start(system ? +run_system : +run_steady);
}

void alarm::set(const deadline& when) noexcept {
    if (when.is_never()) return;
    when_ = when;
    clock_of(when_).set(*this);
}

void alarm::cancel() noexcept {
    if (!when_.is_never()) clock_of(when_).cancel(*this);
}

void watch::set(std::span<platform::pollable> what) {
    service.it.descriptors.set(*this, what, []() noexcept { service.it.descriptors.run(); });
}

void watch::cancel() noexcept {
    if (!what_.empty()) service.it.descriptors.cancel(*this);
}

}  // namespace tocsin::core
