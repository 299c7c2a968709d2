// A wait_set has a ready_list for its events and timers (core/wait/ready_list.cpp says why it is correct). For its
// descriptors it has a poll_set (platform/poller/poller.hpp), which is made when the first descriptor is added.
//
// A waiting thread sleeps on its waiter's word or, if there is a poll_set, in the poll_set's wait(). A thread that
// claims the waiter for an event wakes the waiting thread by that word, or rings the poll_set's doorbell by its number,
// which is in the word. So the claiming thread uses no descriptor of the wait_set (waiter.cpp).
//
// No thread sleeps on its word while there is a poll_set. The waiting thread first becomes the sleeper of the
// ready_list, and then looks for a poll_set. A thread that makes a poll_set first stores it, and then has the sleeper
// look again. Both threads take the ready_list's lock: the waiting thread to become the sleeper, the other thread to
// find it. So either the waiting thread finds the poll_set, or the other thread finds the sleeper.
//
// If an event claims the waiter while a poll finds descriptors, the wait drops what the poll has found: the next poll
// finds those descriptors again. A wait throws an error only while it has taken nothing, because a token that it had
// taken would be lost.
//
// A sleep ends, at the latest, at the wait's deadline or when the earliest timer is due. In the second case the thread
// looks again at what is ready. If nothing is, because the timer has been moved, the thread sleeps again.
//
// Memory order
//   [set-turn]  A wait's turn ends with a release store, and the next wait's turn begins with an acquire. So the next
//               waiting thread sees what the last one wrote to data that only the waiting thread touches.
//   [set-poll]  The thread that makes the poll_set stores the pointer to it with release. A thread that loads the
//               pointer acquires.
//   Everything else is ordered by the lock of the ready_list (ready_list.cpp) and by the lock `admission_`.
//
// Checked by: tests/model/wait_set_poll_model_test.cpp and wait_set_timer_model_test.cpp (P12),
// tests/unit/wait_set_test.cpp, tests/unit/wait_timer_test.cpp, tests/stress/wait_set_stress_test.cpp. The ready_list
// has models of its own (P12).
#include "core/wait/ready_list.hpp"
#include "core/wait/sleep_polling.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>
#include <tocsin/wait_set.hpp>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace tocsin {
namespace {

using core::ready_list;
using core::source_member;
using core::timer_member;
using platform::poll_set;

[[noreturn]] void fail(int error, const char* call, const source& what) {
    char message[80];
    if (what.what() == source::kind::descriptor) {
        std::snprintf(message, sizeof message, "tocsin::wait_set::%s: descriptor %d", call,
                      what.descriptor());
    } else {
        std::snprintf(message, sizeof message, "tocsin::wait_set::%s: event at %p", call, what.object());
    }
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

void check(int error, const char* call, const source& what) {
    if (error != 0) fail(error, call, what);
}

void check(std::uint64_t tag) {
    if (tag == poll_set::no_tag)
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: the greatest number can't be a tag"));
}

[[noreturn]] void fail(int error, const char* message) {
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

void check(const source& what, std::uint64_t tag) {
    if (what.what() == source::kind::timer)
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_set: after() and at() can't be members: add a wait_timer"));
    if (what.what() == source::kind::custom)
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_set: only events and descriptors can be members"));
    check(tag);
}

}  // namespace

class wait_set::state {
public:
    state() = default;
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        const bool lot_is_ours = core::forks() == forks_;
        for (const auto& [object, each] : events_) lot_is_ours ? set_.remove(each) : delete each;
        if (lot_is_ours) set_.remove_timers();
        delete poll_.load(std::memory_order_relaxed);  // no order: no other thread uses it any more
    }

    void add(const source& what, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (what.what() == source::kind::descriptor) {
            check(poll().add(what.descriptor(), what.asked(), tag), "add", what);
            return;
        }
        const auto [place, is_new] = events_.try_emplace(what.object());
        if (!is_new) fail(EEXIST, "add", what);
        TOCSIN_TRY { place->second = new source_member(set_, what, tag); }
        TOCSIN_CATCH(...) {
            events_.erase(place);
            TOCSIN_RETHROW;
        }
        set_.add(*place->second);
    }

    void change(const source& what, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (what.what() == source::kind::descriptor) {
            poll_set* const poll = poll_if_any();
            check(poll == nullptr ? ENOENT : poll->change(what.descriptor(), what.asked(), tag), "change",
                  what);
            return;
        }
        const auto found = events_.find(what.object());
        if (found == events_.end()) fail(ENOENT, "change", what);
        set_.set_tag(*found->second, tag);
    }

    bool remove(const source& what) noexcept {
        const std::lock_guard here(admission_);
        if (what.what() == source::kind::descriptor) {
            poll_set* const poll = poll_if_any();
            return poll != nullptr && poll->remove(what.descriptor()) == 0;
        }
        const auto found = events_.find(what.object());
        if (found == events_.end()) return false;
        set_.remove(found->second);
        events_.erase(found);
        return true;
    }

    void add(timer_member& timer, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (timer.list() != nullptr) fail(EEXIST, "tocsin::wait_set::add: a wait_timer");
        set_.add(timer, tag);
    }

    void change(timer_member& timer, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (timer.list() != &set_) fail(ENOENT, "tocsin::wait_set::change: a wait_timer");
        set_.set_tag(timer, tag);
    }

    bool remove(timer_member& timer) noexcept {
        const std::lock_guard here(admission_);
        if (timer.list() != &set_) return false;
        set_.remove(timer);
        return true;
    }

    set_result wait(std::span<ready_item> out, const detail::wait_options& options) {
        const turn mine(is_waited_in_);
        for (;;) {
            if (const std::size_t found = look(out); found != 0) return {wait_status::signaled, found};
            if (const core::claim how = core::ended_before_wait(options); how != core::claim::open) {
                const std::size_t found = look_at_descriptors(out);
                if (found != 0) return {wait_status::signaled, found};
                return {core::status_from(how, wait_status::signaled)};
            }
            const set_result slept = sleep(out, options);
            if (slept.status != wait_status::signaled || slept.count != 0) return slept;
        }
    }

private:
    // Exists while a thread waits. Lets only one thread wait at a time.
    class turn {
    public:
        explicit turn(detail::atomic<bool>& taken) : taken_(taken) {
            if (taken_.exchange(true, std::memory_order_acquire))  // [set-turn]
                detail::throw_or_die(std::logic_error("tocsin::wait_set: another thread waits in it"));
        }
        ~turn() { taken_.store(false, std::memory_order_release); }  // [set-turn]
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;

    private:
        detail::atomic<bool>& taken_;
    };

    poll_set* poll_if_any() const noexcept {
        return poll_.load(std::memory_order_acquire);  // [set-poll]
    }

    poll_set& poll() {
        if (poll_set* const made = poll_if_any()) return *made;
        int error = 0;
        auto made = platform::poller::open_poll_set(error);
        if (made == nullptr)
            detail::throw_or_die(
                std::system_error(error, platform::error_category(), "tocsin::wait_set::add"));
        poll_.store(made.get(), std::memory_order_release);  // [set-poll]
        set_.wake();
        return *made.release();
    }

    std::size_t look_at_descriptors(std::span<ready_item> out) {
        poll_set* const poll = poll_if_any();
        if (poll == nullptr || out.empty()) return 0;
        const auto found = poll->wait(out, std::chrono::nanoseconds(0));
        if (found.error != 0)
            detail::throw_or_die(
                std::system_error(found.error, platform::error_category(), "tocsin::wait_set::wait"));
        return found.ready;
    }

    // Takes the events and timers that are ready. If there are any, it also looks at the descriptors. (If only
    // descriptors are ready, the poll in sleep() finds them.) If events and timers fill all of `out`, the next call
    // looks at the descriptors first.
    std::size_t look(std::span<ready_item> out) {
        const bool descriptors_first = std::exchange(descriptors_first_, false);
        std::size_t found = descriptors_first ? look_at_descriptors(out) : 0;
        const std::size_t events = set_.take_ready(out.subspan(found), nullptr);
        found += events;
        if (events == 0 || descriptors_first || poll_if_any() == nullptr) return found;
        descriptors_first_ = found == out.size();
        TOCSIN_TRY { return found + look_at_descriptors(out.subspan(found)); }
        TOCSIN_CATCH(const std::system_error&) {
            return found;  // the next wait will fail the same way
        }
    }

    // Returns `signaled` with a count of 0 if the caller must look again.
    set_result sleep(std::span<ready_item> out, const detail::wait_options& options) {
        ready_list::sleeper self(set_);
        if (!set_.begin_sleep(self, options.until)) return {wait_status::signaled};
        platform::poll_result polled;
        const core::claim how = self.waiting.stoppable(options, [&]() noexcept {
            poll_set* const poll = poll_if_any();
            if (poll == nullptr) return self.waiting.sleep(self.until);
            return core::sleep_polling(
                self.waiting, poll->bell(), polled, [&]() noexcept { return poll->wait(out, self.until); },
                []() noexcept { return std::uint32_t{0}; });
        });
        set_.end_sleep(self);
        if (polled.error != 0)
            detail::throw_or_die(
                std::system_error(polled.error, platform::error_category(), "tocsin::wait_set::wait"));
        if (how == core::claim::timed_out && self.until_timer) return {wait_status::signaled};
        if (how != core::claim::signaled) return {core::status_from(how, wait_status::signaled)};
        std::size_t found = polled.ready;
        const core::member* const by = self.by;
        if (by != nullptr) out[found++] = {self.tag, readiness::none};
        if (found == 0) return {wait_status::signaled};
        return {wait_status::signaled, found + set_.take_ready(out.subspan(found), by)};
    }

    ready_list set_;
    core::futex_lock admission_;  // guards the map and the making of the poll_set; taken before other locks
    std::unordered_map<void*, source_member*> events_;
    detail::atomic<poll_set*> poll_{nullptr};
    detail::atomic<bool> is_waited_in_{false};
    bool descriptors_first_ = false;  // only the waiting thread touches it
    const std::uint32_t forks_ = core::forks();
};

static_assert(sizeof(timer_member) <= detail::wait_timer_size && alignof(timer_member) <= 8);

wait_timer::wait_timer() noexcept { ::new (memory_) timer_member; }

wait_timer::~wait_timer() {
    timer_member& own = member();
    if (own.list() != nullptr && own.forks() == core::forks()) own.list()->remove(own);
    own.~timer_member();
}

core::timer_member& wait_timer::member() const noexcept {
    return *std::launder(reinterpret_cast<timer_member*>(memory_));
}

void wait_timer::reset(const deadline& when) noexcept {
    timer_member& own = member();
    own.list() != nullptr ? own.list()->arm(own, when) : own.set_deadline(when);
}

bool wait_timer::is_armed() const noexcept {
    timer_member& own = member();
    return own.list() != nullptr ? own.list()->is_armed(own) : !own.when().is_never();
}

wait_set::wait_set() : state_(std::make_unique<state>()) {}

wait_set::~wait_set() = default;

void wait_set::add(const source& what, std::uint64_t tag) {
    check(what, tag);
    state_->add(what, tag);
}

void wait_set::change(const source& what, std::uint64_t tag) {
    check(what, tag);
    state_->change(what, tag);
}

bool wait_set::remove(const source& what) noexcept { return state_->remove(what); }

void wait_set::add(wait_timer& timer, std::uint64_t tag) {
    check(tag);
    state_->add(timer.member(), tag);
}

void wait_set::change(wait_timer& timer, std::uint64_t tag) {
    check(tag);
    state_->change(timer.member(), tag);
}

bool wait_set::remove(wait_timer& timer) noexcept { return state_->remove(timer.member()); }

set_result wait_set::wait(const limits& how, std::span<ready_item> out) {
    if (out.empty())
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: no room for what is ready"));
    return state_->wait(out, detail::options_of(how));
}

set_result wait_set::wait(std::span<ready_item> out) { return wait({}, out); }

}  // namespace tocsin
