// SPDX-License-Identifier: Apache-2.0
// Events, semaphores, latches and barriers.
#include "boundary.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>

using namespace tocsin::c;
using tocsin::auto_reset_event;
using tocsin::latch;
using tocsin::manual_reset_event;
using semaphore = tocsin::counting_semaphore<>;

namespace tocsin::c {
namespace {

// What tocsin_barrier_init() is given. A completion function of C must not throw.
struct completion {
    void (*call)(void* context);
    void* context;
    void operator()() const noexcept {
        if (call != nullptr) call(context);
    }
};
using barrier = tocsin::barrier<completion>;

static_assert(semaphore::max() == TOCSIN_SEMAPHORE_MAX);
static_assert(latch::max() == TOCSIN_ARRIVALS_MAX && barrier::max() == TOCSIN_ARRIVALS_MAX);

template <class Event, class C>
tocsin_status set(C* event, const char* call) noexcept {
    return with<Event>(event, [](Event& one) { return one.set(), TOCSIN_OK; }, call);
}
template <class Event, class C>
tocsin_status set_into(C* event, tocsin_wake_list* list, const char* call) noexcept {
    return with<tocsin::wake_list>(
        list,
        [=](tocsin::wake_list& freed) {
            return with<Event>(event, [&](Event& one) { return one.set(freed), TOCSIN_OK; }, call);
        },
        call);
}
template <class Event, class C>
tocsin_status reset(C* event, const char* call) noexcept {
    return with<Event>(event, [](Event& one) { return one.reset(), TOCSIN_OK; }, call);
}
template <class T, class C>
tocsin_status try_wait(C* object, const char* call) noexcept {
    return with<T>(object, [](auto& one) { return done_if(one.try_wait()); }, call);
}
template <class T, class C>
tocsin_status wait(C* object, const tocsin_limits* how, const char* call) noexcept {
    return with<T>(object, [=](auto& one) { return wait_for_one(one, how, call); }, call);
}
template <class Event, class C>
bool is_set(const C* event) noexcept {
    const Event* const one = object_at<Event>(event);
    return one != nullptr && one->is_set();
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_manual_event_init(tocsin_manual_event* event, bool initially_set) {
    return make<manual_reset_event>(event, __func__, initially_set);
}
tocsin_status tocsin_manual_event_destroy(tocsin_manual_event* event) {
    return destroy<manual_reset_event>(event);
}
tocsin_status tocsin_manual_event_set(tocsin_manual_event* event) {
    return set<manual_reset_event>(event, __func__);
}
tocsin_status tocsin_manual_event_reset(tocsin_manual_event* event) {
    return reset<manual_reset_event>(event, __func__);
}
bool tocsin_manual_event_is_set(const tocsin_manual_event* event) {
    return is_set<manual_reset_event>(event);
}
tocsin_status tocsin_manual_event_try_wait(tocsin_manual_event* event) {
    return try_wait<manual_reset_event>(event, __func__);
}
tocsin_status tocsin_manual_event_wait(tocsin_manual_event* event, const tocsin_limits* how) {
    return wait<manual_reset_event>(event, how, __func__);
}

tocsin_status tocsin_auto_event_init(tocsin_auto_event* event, bool initially_set) {
    return make<auto_reset_event>(event, __func__, initially_set);
}
tocsin_status tocsin_auto_event_destroy(tocsin_auto_event* event) { return destroy<auto_reset_event>(event); }
tocsin_status tocsin_auto_event_set(tocsin_auto_event* event) {
    return set<auto_reset_event>(event, __func__);
}
tocsin_status tocsin_auto_event_reset(tocsin_auto_event* event) {
    return reset<auto_reset_event>(event, __func__);
}
bool tocsin_auto_event_is_set(const tocsin_auto_event* event) { return is_set<auto_reset_event>(event); }
tocsin_status tocsin_auto_event_try_wait(tocsin_auto_event* event) {
    return try_wait<auto_reset_event>(event, __func__);
}
tocsin_status tocsin_auto_event_wait(tocsin_auto_event* event, const tocsin_limits* how) {
    return wait<auto_reset_event>(event, how, __func__);
}

tocsin_status tocsin_wake_list_init(tocsin_wake_list* list) {
    return make<tocsin::wake_list>(list, __func__);
}
tocsin_status tocsin_wake_list_destroy(tocsin_wake_list* list) { return destroy<tocsin::wake_list>(list); }
tocsin_status tocsin_wake_list_wake(tocsin_wake_list* list) {
    return with<tocsin::wake_list>(list, [](tocsin::wake_list& freed) { return freed.wake(), TOCSIN_OK; });
}
tocsin_status tocsin_manual_event_set_into(tocsin_manual_event* event, tocsin_wake_list* list) {
    return set_into<manual_reset_event>(event, list, __func__);
}
tocsin_status tocsin_auto_event_set_into(tocsin_auto_event* event, tocsin_wake_list* list) {
    return set_into<auto_reset_event>(event, list, __func__);
}

tocsin_status tocsin_semaphore_init(tocsin_semaphore* one, uint32_t permits) {
    if (permits > TOCSIN_SEMAPHORE_MAX) return refuse(__func__, "too many permits");
    return make<semaphore>(one, __func__, static_cast<std::ptrdiff_t>(permits));
}
tocsin_status tocsin_semaphore_destroy(tocsin_semaphore* one) { return destroy<semaphore>(one); }
tocsin_status tocsin_semaphore_release(tocsin_semaphore* one, uint32_t permits) {
    if (permits > TOCSIN_SEMAPHORE_MAX) return refuse(__func__, "too many permits", TOCSIN_ERROR_TOO_GREAT);
    return with<semaphore>(one, [=](semaphore& permitted) {
        return permitted.release(static_cast<std::ptrdiff_t>(permits)), TOCSIN_OK;
    });
}
tocsin_status tocsin_semaphore_try_acquire(tocsin_semaphore* one, uint32_t permits) {
    if (permits > TOCSIN_SEMAPHORE_MAX) return refuse(__func__, "too many permits");
    return with<semaphore>(one, [=](semaphore& permitted) {
        return done_if(permitted.try_acquire(static_cast<std::ptrdiff_t>(permits)));
    });
}
tocsin_status tocsin_semaphore_acquire(tocsin_semaphore* one, uint32_t permits, const tocsin_limits* how) {
    if (permits > TOCSIN_SEMAPHORE_MAX || !is_valid(how))
        return refuse(__func__, "too many permits, or the limits are not valid");
    return with<semaphore>(one, [=](semaphore& permitted) {
        const auto wanted = static_cast<std::ptrdiff_t>(permits);
        if (permitted.try_acquire(wanted)) return TOCSIN_OK;
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token* const stop = until.stop.get();
        if (stop != nullptr)
            return status_of(permitted.try_acquire_until(wanted, until.until, *stop, until.spin));
        return permitted.try_acquire_until(wanted, until.until, until.spin) ? TOCSIN_OK : TOCSIN_TIMED_OUT;
    });
}

tocsin_status tocsin_latch_init(tocsin_latch* one, uint32_t expected) {
    if (expected > TOCSIN_ARRIVALS_MAX) return refuse(__func__, "the number is too great");
    return make<latch>(one, __func__, static_cast<std::ptrdiff_t>(expected));
}
tocsin_status tocsin_latch_destroy(tocsin_latch* one) { return destroy<latch>(one); }
tocsin_status tocsin_latch_count_down(tocsin_latch* one, uint32_t by) {
    if (by > TOCSIN_ARRIVALS_MAX) return refuse(__func__, "the number is too great");
    return with<latch>(
        one, [=](latch& counted) { return counted.count_down(static_cast<std::ptrdiff_t>(by)), TOCSIN_OK; });
}
tocsin_status tocsin_latch_try_wait(const tocsin_latch* one) { return try_wait<latch>(one, __func__); }
tocsin_status tocsin_latch_wait(const tocsin_latch* one, const tocsin_limits* how) {
    return wait<latch>(one, how, __func__);
}
tocsin_status tocsin_latch_arrive_and_wait(tocsin_latch* one, uint32_t by) {
    if (by > TOCSIN_ARRIVALS_MAX) return refuse(__func__, "the number is too great");
    return with<latch>(one, [=](latch& counted) {
        return counted.arrive_and_wait(static_cast<std::ptrdiff_t>(by)), TOCSIN_OK;
    });
}

tocsin_status tocsin_barrier_init(tocsin_barrier* one, uint32_t expected, void (*call)(void* context),
                                  void* context) {
    if (expected > TOCSIN_ARRIVALS_MAX) return refuse(__func__, "the number is too great");
    return make<barrier>(one, __func__, static_cast<std::ptrdiff_t>(expected), completion{call, context});
}
tocsin_status tocsin_barrier_destroy(tocsin_barrier* one) { return destroy<barrier>(one); }
tocsin_status tocsin_barrier_arrive(tocsin_barrier* one, uint32_t arrivals, tocsin_barrier_token* token) {
    if (arrivals == 0 || arrivals > TOCSIN_ARRIVALS_MAX ||
        object_at<barrier::arrival_token>(token) == nullptr)
        return refuse(__func__, "the number is zero or too great, or there is no token");
    return with<barrier>(one, [=](barrier& phases) {
        new (token) barrier::arrival_token(phases.arrive(static_cast<std::ptrdiff_t>(arrivals)));
        return TOCSIN_OK;
    });
}
tocsin_status tocsin_barrier_try_wait(const tocsin_barrier* one, const tocsin_barrier_token* token) {
    if (held_at<void>(token) == nullptr)
        return refuse(__func__, "the token is null, misaligned or of no phase");
    return with<barrier>(one, [=](const barrier& phases) {
        return done_if(phases.try_wait(*object_at<barrier::arrival_token>(token)));
    });
}
tocsin_status tocsin_barrier_wait(const tocsin_barrier* one, const tocsin_barrier_token* token,
                                  const tocsin_limits* how) {
    if (held_at<void>(token) == nullptr || !is_valid(how))
        return refuse(__func__, "the token is null, misaligned or of no phase, or the limits are not valid");
    return with<barrier>(one, [=](const barrier& phases) {
        const barrier::arrival_token& phase = *object_at<barrier::arrival_token>(token);
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token* const stop = until.stop.get();
        return status_of(stop == nullptr ? phases.wait_until(phase, until.until, until.spin)
                                         : phases.wait_until(phase, until.until, *stop, until.spin));
    });
}
tocsin_status tocsin_barrier_arrive_and_wait(tocsin_barrier* one) {
    return with<barrier>(one, [](barrier& phases) { return phases.arrive_and_wait(), TOCSIN_OK; });
}
tocsin_status tocsin_barrier_arrive_and_drop(tocsin_barrier* one) {
    return with<barrier>(one, [](barrier& phases) { return phases.arrive_and_drop(), TOCSIN_OK; });
}

}  // extern "C"
