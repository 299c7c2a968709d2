// SPDX-License-Identifier: Apache-2.0
// Waits for any of several objects, of which some are mutexes that processes share.
//
// Such a mutex is a shared_lock, which is no source: the thread that waits in its queue must be the one that owns it
// afterwards, because the kernel notices the death of that thread. So the thread waits for the lock itself, and an
// operation (operation.hpp) waits for the other objects meanwhile. The operation ends the thread's wait by a stop.
//
// Both may be given what they wait for. Then the operation's object is the one that the call takes, and the mutex is
// handed on. To others it looks as if the thread had owned it for a moment. An abandoned mutex is abandoned again. The
// same holds if the wait for the mutex fails: an object that the operation has been given meanwhile counts.
//
// A thread can be in the queue of one lock at a time. If the wait names several such mutexes, the thread waits for each
// of them for 10 ms in turn.
//
// Checked by: win32/tests/unit/shared_names_test.cpp.
#include "small_array.hpp"
#include "wait.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <system_error>

namespace tocsin::win32 {
namespace {

using std::chrono_literals::operator""ms;

// The wait for the objects that are sources. It has ended when the destructor returns.
class other_objects {
public:
    other_objects(std::span<const source> all, const deadline& until)
        : memory_(std::make_unique<std::byte[]>(operation_size(all.size()))),
          wait_(span_operation::make(memory_.get(), false, all, {}, called, this)) {
        wait_.on(inline_executor).start(limits{.until = until});
        is_started_ = true;
    }
    other_objects(const other_objects&) = delete;
    other_objects& operator=(const other_objects&) = delete;
    ~other_objects() {
        if (is_started_) end();
        std::destroy_at(
            &wait_);  // its function may still be in the queue of this thread, and is not called then
    }

    stop_token when_ended() const noexcept { return stop_.get_token(); }
    // Ends the wait, if nothing else has.
    any_result result() noexcept {
        end();
        return result_;
    }
    // After result(): 0, or why the system refused to wait.
    int error() const noexcept { return wait_.error(); }

private:
    static void called(void* self, const any_result& how) noexcept {
        auto& me = *static_cast<other_objects*>(self);
        me.result_ = how;
        (void)me.stop_.request_stop();
        me.ended_.set();
    }
    // If this thread has ended the wait itself, there is nothing to wait for.
    void end() noexcept {
        if (is_cancelled_) return;
        is_cancelled_ = wait_.cancel();
        if (!is_cancelled_) ended_.wait();
    }

    std::stop_source stop_;
    any_result result_{.status = wait_status::stopped};
    manual_reset_event ended_;
    std::unique_ptr<std::byte[]> memory_;
    span_operation& wait_;
    bool is_started_ = false;
    bool is_cancelled_ = false;  // by this thread
};

// Takes the object if it is ready. A descriptor is ready as it is.
bool is_ready_now(object& what) {
    if (!is_descriptor(what)) return try_take(what);
    return wait_any({.until = deadline_after(0)}, source_of(what)).status == wait_status::signaled;
}

}  // namespace

DWORD any_wait::wait_with_mutexes() {
    for (index = 0; index != objects.size(); ++index)
        if (is_ready_now(*objects[index])) return WAIT_OBJECT_0;
    if (until.which() == deadline::clock::passed && !alertable) return WAIT_TIMEOUT;

    static constinit manual_reset_event never;
    const std::size_t max = objects.size() + 1;  // for all: of two sizes, GCC 16 takes one to be negative
    small_array<source, MAXIMUM_WAIT_OBJECTS + 1> sources(max);
    small_array<std::size_t, MAXIMUM_WAIT_OBJECTS + 1> at(max);
    small_array<std::size_t, MAXIMUM_WAIT_OBJECTS + 1> mutexes(max);
    for (std::size_t i = 0; i != objects.size(); ++i) {
        if (is_shared_mutex(*objects[i])) {
            mutexes.add(i);
        } else {
            sources.add(source_of(*objects[i]));
            at.add(i);
        }
    }
    if (alertable) {
        sources.add(self->called);
        at.add(objects.size());
    }
    const auto mutex_at = [&](std::size_t i) -> mutex_object& {
        return static_cast<mutex_object&>(*objects[mutexes.all()[i]]);
    };
    if (sources.size() == 0) {
        if (mutexes.size() == 1) {
            index = mutexes.all()[0];
            return mutex_at(0).take_shared(until) ? WAIT_OBJECT_0 : WAIT_TIMEOUT;
        }
        sources.add(never);  // for the deadline
        at.add(objects.size());
    }

    other_objects others(sources.all(), until);
    const stop_token ended = others.when_ended();
    const auto is_signaled = [&] {
        return others.result().status == wait_status::signaled && others.error() == 0;
    };
    std::size_t turn = 0;
    bool taken = false;
    TOCSIN_TRY {
        for (; !taken && !ended.stop_requested(); turn = (turn + 1) % mutexes.size()) {
            index = mutexes.all()[turn];
            const deadline turn_end = mutexes.size() == 1 ? deadline::never() : deadline(10ms);
            taken = mutex_at(turn).take_shared(turn_end, ended);
        }
    }
    TOCSIN_CATCH(...) {
        if (!is_signaled()) TOCSIN_RETHROW;  // otherwise the signal that the operation has taken counts
    }
    const any_result how = others.result();
    const int error = others.error();
    if (error == 0 && how.status != wait_status::signaled) return taken ? WAIT_OBJECT_0 : WAIT_TIMEOUT;
    if (taken) give_back(*objects[index]);
    if (error != 0)
        detail::throw_or_die(
            std::system_error(error, std::generic_category(), "tocsin: a wait for several objects"));
    index = at.all()[how.index];
    return WAIT_OBJECT_0;
}

}  // namespace tocsin::win32
