// A set of events (core/wait/ready_list.cpp, where the argument is) with a standing poll beside it (platform/poller/poller.hpp),
// made for the first descriptor.
//
// A thread sleeps on its waiter's word, or, if there is a poll, in that; whoever claims the waiter for an event wakes
// the one or rings the other, and needs no descriptor of the set's for it (waiter.cpp). No thread sleeps on its word
// while there is a poll: it looks for one after it has become the set's sleeper; who makes one does that first, and
// then has the set's sleeper look again. Both pass the set's lock in between, so one finds the other.
//
// What a poll has found while an event claimed the waiter is dropped: descriptors are found again by the next.
// Errors are thrown only while nothing is taken: a token would be lost with them.
//
// Checked by: tests/unit/wait_set_test.cpp, tests/stress/wait_set_stress_test.cpp; the ready_list by models (P12).
#include "core/wait/ready_list.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>
#include <tocsin/wait_set.hpp>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace tocsin {
namespace {

using core::member;
using core::ready_list;
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

void check(const source& what, std::uint64_t tag) {
    if (what.what() == source::kind::timer)
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_set: a timer can't be a member: wait until it comes"));
    if (what.what() == source::kind::custom)
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_set: only events and descriptors can be members"));
    if (tag == poll_set::no_tag)
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: the greatest number can't be a tag"));
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
        delete poll_.load(std::memory_order_relaxed);  // no order: nobody else uses it any more
    }

    void add(const source& what, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (what.what() == source::kind::descriptor) {
            check(poll().add(what.descriptor(), what.asked(), tag), "add", what);
            return;
        }
        const auto [place, is_new] = events_.try_emplace(what.object());
        if (!is_new) fail(EEXIST, "add", what);
        TOCSIN_TRY { place->second = new member(set_, what, tag); }
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

    set_result wait(std::span<ready_item> out, const detail::wait_options& options) {
        const turn mine(is_waited_in_);
        for (;;) {
            if (const std::size_t found = look(out); found != 0) return {wait_status::signaled, found};
            if (options.stop != nullptr && options.stop->stop_requested()) return {wait_status::stopped};
            if (options.until.has_passed()) {
                const std::size_t found = look_at_descriptors(out);
                return {found != 0 ? wait_status::signaled : wait_status::timed_out, found};
            }
            const set_result slept = sleep(out, options);
            if (slept.status != wait_status::signaled || slept.count != 0) return slept;
        }
    }

private:
    // One thread at a time.
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
        auto made = platform::open_poll_set(error);
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

    // What is ready: events, and if there are any also descriptors; those alone are for the sleep to find. Events
    // that fill all the room let descriptors go first the next time.
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

    // `signaled` without any: to look again.
    set_result sleep(std::span<ready_item> out, const detail::wait_options& options) {
        ready_list::sleeper self(set_);
        if (!set_.begin_sleep(self)) return {wait_status::signaled};
        platform::poll_result polled;
        const core::claim how = self.waiting.stoppable(options, [&]() noexcept {
            poll_set* const poll = poll_if_any();
            return poll == nullptr ? self.waiting.sleep(options.until)
                                   : sleep_polling(self.waiting, *poll, out, options.until, polled);
        });
        set_.end_sleep(self);
        if (polled.error != 0)
            detail::throw_or_die(
                std::system_error(polled.error, platform::error_category(), "tocsin::wait_set::wait"));
        if (how == core::claim::stopped) return {wait_status::stopped};
        if (how == core::claim::timed_out) return {wait_status::timed_out};
        std::size_t found = polled.ready;
        const member* const by = self.by;
        if (by != nullptr) out[found++] = {self.tag, readiness::none};
        if (found == 0) return {wait_status::signaled};
        return {wait_status::signaled, found + set_.take_ready(out.subspan(found), by)};
    }

    static core::claim sleep_polling(core::waiter& self, poll_set& poll, std::span<ready_item> out,
                                     const deadline& until, platform::poll_result& polled) noexcept {
        const auto look = [&]() noexcept {
            polled = poll.wait(out, until);
            return polled.ended();
        };
        if (!self.poll_until_released(poll.bell(), look)) {
            const auto reason = polled.ready != 0 ? core::claim::signaled : core::claim::timed_out;
            if (self.try_claim(reason)) return reason;
            self.sleep_until_released(
                deadline::never());  // another thread has claimed it: its release is on the way
        }
        polled = {};
        return self.finish();
    }

    ready_list set_;
    core::futex_lock admission_;  // for the map and the poll's making; before all others
    std::unordered_map<void*, member*> events_;
    detail::atomic<poll_set*> poll_{nullptr};
    detail::atomic<bool> is_waited_in_{false};
    bool descriptors_first_ = false;  // the waiting thread's
    const std::uint32_t forks_ = core::forks();
};

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

set_result wait_set::wait(const limits& how, std::span<ready_item> out) {
    if (out.empty())
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: no room for what is ready"));
    return state_->wait(out, detail::options_of(how));
}

set_result wait_set::wait(std::span<ready_item> out) { return wait({}, out); }

}  // namespace tocsin
