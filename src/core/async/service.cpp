// State
//   For each of the two clocks that can't be translated into each other a heap of alarms, the earliest on top, and a
//   thread that sleeps until then. (An alarm on a clock of the user's is one on the steady clock at its estimated
//   end, and asked again when that comes.) For descriptors a list of watches, and a thread that polls them all.
//   Each thread starts when it is needed first, and stays for the life of the process.
//
// Invariants
//   service-1  Heap, list and table are touched under their own lock only; but the table is the thread's own while it polls.
//       It names no watch: who is concerned by what was found is in the list.
//   service-2  An errand that is due leaves heap or list first; it is claimed under the same lock. So after cancel() it is
//       claimed already, and will be acted on, or never will be.
//   service-3  Acts run under no lock, and all that are due are acted on before any coroutine runs (resumption.hpp).
//   service-4  A thread sleeps on what it has seen under the lock: whoever puts something earlier there, or any descriptor,
//       changes its word or rings its bell afterwards.
//   service-5  After cancel() the thread does not poll the watch's descriptors on its account: cancel() rings, and returns
//       when the poll that was under way has ended. So they may be closed, and no system keeps them open, or tied to
//       the poll, any longer. A poll's beginning and end are noted under the lock, and its end wakes as many as have
//       said under it that they wait. The thread itself cancels between its polls, and does not wait.
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
#include "core/async/service.hpp"

#include "core/lot/resume_queue.hpp"
#include "core/sync/futex_lock.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

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
class completions {
public:
    void claim(completion& due) noexcept {
        if (!due.claim()) return;
        due.next_due_ = nullptr;
        (first_ != nullptr ? last_->next_due_ : first_) = &due;
        last_ = &due;
    }

    // True if there were any.
    bool run() noexcept {
        const defer_resumes after_all;
        const bool any = first_ != nullptr;
        while (completion* const each = first_) {
            first_ = each->next_due_;  // before the act, after which it may be gone
            each->run();
        }
        return any;
    }

private:
    completion* first_ = nullptr;
    completion* last_ = nullptr;
};

// A pairing heap.
class timer_heap {
public:
    timer* earliest() const noexcept { return root_; }

    void insert(timer& one) noexcept {
        one.child_ = one.next_ = one.previous_ = nullptr;
        root_ = meld(root_, &one);
    }

    void remove(timer& one) noexcept {
        timer* const below = meld_all(std::exchange(one.child_, nullptr));
        if (&one == root_) {
            root_ = below;
            return;
        }
        (one.previous_->child_ == &one ? one.previous_->child_ : one.previous_->next_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        root_ = meld(root_, below);
    }

private:
    static timer* meld(timer* a, timer* b) noexcept {
        if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
        if (b->key_ < a->key_) std::swap(a, b);
        b->next_ = a->child_;
        if (b->next_ != nullptr) b->next_->previous_ = b;
        b->previous_ = a;
        a->child_ = b;
        return a;
    }

    // Siblings: in pairs from the left, and the pairs from the right.
    static timer* meld_all(timer* first) noexcept {
        timer* pairs = nullptr;
        while (first != nullptr) {
            timer* const second = std::exchange(first->next_, nullptr);
            timer* const rest = second != nullptr ? std::exchange(second->next_, nullptr) : nullptr;
            timer* const pair = meld(first, second);
            pair->next_ = std::exchange(pairs, pair);
            first = rest;
        }
        timer* all = nullptr;
        while (pairs != nullptr) {
            timer* const next = std::exchange(pairs->next_, nullptr);
            all = meld(all, pairs);
            pairs = next;
        }
        if (all != nullptr) all->previous_ = nullptr;
        return all;
    }

    timer* root_ = nullptr;
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

class timer_thread {
public:
    void start(void (*body)() noexcept) {
        const std::lock_guard held(lock_);
        start_once(started_, body);
    }

    void set(timer& one) noexcept {
        {
            const std::lock_guard held(lock_);
            put(one);
            if (heap_.earliest() != &one) return;
            changed_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock's (service-4)
        }
        platform::futex_wake_one(&changed_);
    }

    void cancel(timer& one) noexcept {
        const std::lock_guard held(lock_);
        if (std::exchange(one.is_set_, false)) heap_.remove(one);
    }

    void run(bool steady) noexcept {
        for (;;) {
            completions due;
            std::uint32_t seen;
            deadline next = deadline::never();
            {
                const std::lock_guard held(lock_);
                take_due(due);
                seen = changed_.load(std::memory_order_relaxed);  // no order: the lock's (service-4)
                if (const timer* const earliest = heap_.earliest()) next = at(earliest->key_, steady);
            }
            if (!due.run()) (void)platform::futex_wait(changed_, seen, next);
        }
    }

private:
    static deadline at(std::int64_t wait_key, bool steady) noexcept {
        const std::chrono::nanoseconds since(wait_key);
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

    void put(timer& one) noexcept {
        one.key_ = key_of(one.when_);
        one.is_set_ = true;
        heap_.insert(one);
    }

    void take_due(completions& due) noexcept {
        while (timer* const earliest = heap_.earliest()) {
            const bool estimated = earliest->when_.which() == deadline::clock::other;
            if (!(estimated ? at(earliest->key_, true) : earliest->when_).has_passed()) return;
            heap_.remove(*earliest);
            earliest->is_set_ = false;
            if (!earliest->when_.has_passed()) {
                put(*earliest);
            } else if (const deadline* const later = earliest->postponed()) {
                earliest->when_ = *later;
                put(*earliest);
            } else {
                due.claim(*earliest);
            }
        }
    }

    futex_lock lock_;
    timer_heap heap_;
    platform::futex_word changed_{0};
    bool started_ = false;
};

// What is polled: each descriptor once, whoever watches it. (A process may poll as many as it may have, with some
// systems.) Those who ask for hang-ups share another place: to them the system says more.
class polled_table {
public:
    std::span<platform::poll_entry> all() noexcept { return polls_; }
    std::size_t room() const noexcept { return polls_.capacity(); }

    void reserve(std::size_t room) {
        polls_.reserve(room);
        places_.reserve(room);
        buckets_.reserve(2 * room);
    }

    // Room for `watched`.
    void clear(std::size_t watched) noexcept {
        polls_.clear();
        places_.clear();
        buckets_.assign(2 * watched, nobody);
    }
    // Where they are: the first number to ask found() for.
    std::size_t add(std::span<const platform::poll_entry> what) noexcept {
        const std::size_t first = places_.size();
        for (const platform::poll_entry& each : what) places_.push_back(place_for(each));
        return first;
    }

    std::uint32_t place(std::size_t number) const noexcept { return places_[number]; }
    // Of what was polled for several, what concerns one who asked for this.
    readiness found(std::size_t number, readiness asked) const noexcept {
        constexpr readiness unasked = readiness::hang_up | readiness::error | readiness::invalid;
        return polls_[places_[number]].found & (asked | unasked);
    }

private:
    static constexpr std::uint32_t nobody = static_cast<std::uint32_t>(-1);

    std::uint32_t place_for(const platform::poll_entry& one) noexcept {
        constexpr readiness apart = readiness::hang_up | readiness::signaled;
        const readiness kind = one.asked & apart;
        std::size_t bucket = static_cast<std::uint32_t>(one.descriptor) % buckets_.size();
        for (; buckets_[bucket] != nobody; bucket = (bucket + 1) % buckets_.size()) {
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
    std::vector<std::uint32_t> places_;   // in polls_, of each that is watched
    std::vector<std::uint32_t> buckets_;  // places in polls_ by descriptor; linear probing
};

class poll_thread {
public:
    void set(poll_request& one, std::span<platform::poll_entry> what, void (*body)() noexcept) {
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

    void cancel(poll_request& one) noexcept {
        std::unique_lock held(lock_);
        if (!one.is_set_) return;
        const bool is_polled = is_polling_ && one.is_polled_;
        unlink(one);
        if (!is_polled || platform::other_threads_are_gone()) return;
        ++leaving_;
        const std::uint32_t poll = polls_.load(std::memory_order_relaxed);  // no order: the lock's
        held.unlock();
        platform::ring_doorbell(bell_);
        for (held.lock(); polls_.load(std::memory_order_relaxed) == poll;
             held.lock()) {  // no order: the lock's
            held.unlock();
            (void)platform::futex_wait(polls_, poll, deadline::never());
        }
    }

    void run() noexcept {
        for (;;) {
            {
                const std::lock_guard held(lock_);
                if (std::exchange(changed_, false)) rebuild();
                is_polling_ = true;
            }
            const auto result = platform::poll(polled_.all(), bell_, deadline::never());
            completions due;
            std::size_t left;
            {
                const std::lock_guard held(lock_);
                is_polling_ = false;
                polls_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock's
                left = std::exchange(leaving_, 0);
                if (result.ready != 0 || result.error != 0) take_due(due, result);
            }
            for (; left != 0; --left) platform::futex_wake_one(&polls_);
            due.run();
        }
    }

private:
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
        polled_table larger;
        larger.reserve(room);
        larger_ = std::move(larger);
        room_ = room;
    }

    void rebuild() noexcept {
        if (larger_.room() > polled_.room()) polled_ = std::exchange(larger_, {});
        polled_.clear(watched_);
        for (poll_request* each = first_; each != nullptr; each = each->next_) {
            each->place_ = polled_.add(each->what_);
            each->is_polled_ = true;
        }
    }

    void take_due(completions& due, const platform::poll_result& result) noexcept {
        for (poll_request *each = first_, *next = nullptr; each != nullptr; each = next) {
            next = each->next_;
            if (!each->is_polled_ || !is_due(*each, result)) continue;
            unlink(*each);
            due.claim(*each);
        }
    }

    // An error of one descriptor ends the waits that have named it; another all.
    bool is_due(poll_request& one, const platform::poll_result& result) const noexcept {
        bool due = result.error != 0 && result.culprit == platform::no_culprit;
        for (std::size_t i = 0; i != one.what_.size(); ++i) {
            const std::size_t number = one.place_ + i;
            readiness& found = one.what_[i].found;
            found = result.error == 0 ? polled_.found(number, one.what_[i].asked) : readiness::none;
            due |= found != readiness::none;
            if (result.error == 0 || result.culprit != polled_.place(number)) continue;
            one.culprit_ = i;
            due = true;
        }
        if (due) one.error_ = result.error;
        return due;
    }

    void unlink(poll_request& one) noexcept {
        one.is_set_ = one.is_polled_ = false;
        (one.previous_ != nullptr ? one.previous_->next_ : first_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        watched_ -= one.what_.size();
        changed_ = true;
    }

    futex_lock lock_;
    bool started_ = false;
    bool changed_ = false;
    bool is_polling_ = false;
    platform::doorbell_id bell_ = platform::no_doorbell;
    poll_request* first_ = nullptr;
    std::size_t watched_ = 0;  // descriptors, some perhaps several times
    std::size_t room_ = 0;
    polled_table polled_;
    polled_table larger_;
    std::size_t leaving_ = 0;        // who wait for the end of the poll that is under way
    platform::futex_word polls_{0};  // that have ended
};

namespace {

// Never destroyed: the threads go on at exit.
struct everything {
    timer_thread steady;
    timer_thread system;
    poll_thread descriptors;
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

timer_thread& clock_of(const deadline& when) noexcept {
    return when.which() == deadline::clock::system ? service.it.system : service.it.steady;
}

}  // namespace

void timer::start(const deadline& when) {
    if (when.is_never()) return;
    const auto run_steady = []() noexcept { service.it.steady.run(true); };
    const auto run_system = []() noexcept { service.it.system.run(false); };
    const bool system = when.which() == deadline::clock::system;
    clock_of(when).start(system ? +run_system : +run_steady);
}

void timer::set(const deadline& when) noexcept {
    if (when.is_never()) return;
    when_ = when;
    clock_of(when_).set(*this);
}

void timer::cancel() noexcept {
    if (!when_.is_never()) clock_of(when_).cancel(*this);
}

void poll_request::set(std::span<platform::poll_entry> what) {
    service.it.descriptors.set(*this, what, []() noexcept { service.it.descriptors.run(); });
}

void poll_request::cancel() noexcept {
    if (!what_.empty()) service.it.descriptors.cancel(*this);
}

}  // namespace tocsin::core
