// SPDX-License-Identifier: Apache-2.0
// Waits for several sources, sets of sources with timers, and pollables.
#include "boundary.hpp"

#include <tocsin/pollable.hpp>
#include <tocsin/ticker.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

using namespace tocsin::c;
using tocsin::pollable;
using tocsin::ticker;
using tocsin::wait_set;
using tocsin::wait_timer;

namespace tocsin::c {
namespace {

// A wait of the set fills the caller's memory with items of C++, which are not larger than items of C. They are
// converted in place, from the last one to the first. So no item is overwritten before it is read.
static_assert(sizeof(tocsin::ready_item) <= sizeof(tocsin_ready_item));
static_assert(alignof(tocsin::ready_item) <= alignof(tocsin_ready_item));

// Calls `use` with the set and the C++ source.
template <class Use>
tocsin_status with_member(tocsin_wait_set* set, const tocsin_source* from, Use&& use,
                          const char* call) noexcept {
    return with_held<wait_set>(
        set,
        [&](wait_set& one) {
            const bool is_source = object_at<tocsin_source>(from) != nullptr;
            const tocsin::source member = is_source ? source_of(*from) : tocsin::source();
            if (member.empty()) return refuse(call, "the source is of no kind, null or misaligned");
            return use(one, member);
        },
        call);
}
template <class Use>
tocsin_status with_timer(tocsin_wait_set* set, tocsin_wait_timer* from, Use&& use,
                         const char* call) noexcept {
    wait_timer* const timer = object_at<wait_timer>(from);
    if (timer == nullptr) return refuse(call, "the timer is null or misaligned");
    return with_held<wait_set>(set, [&](wait_set& one) { return use(one, *timer); }, call);
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_wait_any(const tocsin_source* sources, size_t count, const tocsin_limits* how,
                              tocsin_any_result* result) {
    if (result != nullptr) *result = {SIZE_MAX, 0};
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    const source_array list(sources, count, __func__);
    if (list.status() != TOCSIN_OK) return list.status();
    return guarded(__func__, [&] {
        const tocsin::any_result ended = tocsin::wait_any(limits_of(how), list.all());
        if (result != nullptr) *result = {ended.index, static_cast<uint32_t>(ended.found)};
        return status_of(ended.status);
    });
}

tocsin_status tocsin_wait_all(const tocsin_source* sources, size_t count, const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    const source_array list(sources, count, __func__);
    if (list.status() != TOCSIN_OK) return list.status();
    return guarded(__func__, [&] { return status_of(tocsin::wait_all(limits_of(how), list.all())); });
}

tocsin_status tocsin_wait_set_init(tocsin_wait_set* set) { return make_held<wait_set>(set, __func__); }
tocsin_status tocsin_wait_set_destroy(tocsin_wait_set* set) { return destroy_held<wait_set>(set); }
tocsin_status tocsin_wait_set_add(tocsin_wait_set* set, const tocsin_source* source, uint64_t tag) {
    const auto add = [=](wait_set& one, const tocsin::source& member) {
        return one.add(member, tag), TOCSIN_OK;
    };
    return with_member(set, source, add, __func__);
}
tocsin_status tocsin_wait_set_change(tocsin_wait_set* set, const tocsin_source* source, uint64_t tag) {
    const auto change = [=](wait_set& one, const tocsin::source& member) {
        return one.change(member, tag), TOCSIN_OK;
    };
    return with_member(set, source, change, __func__);
}
tocsin_status tocsin_wait_set_remove(tocsin_wait_set* set, const tocsin_source* source) {
    const auto remove = [](wait_set& one, const tocsin::source& member) {
        return done_if(one.remove(member));
    };
    return with_member(set, source, remove, __func__);
}
tocsin_status tocsin_wait_set_add_timer(tocsin_wait_set* set, tocsin_wait_timer* timer, uint64_t tag) {
    const auto add = [=](wait_set& one, wait_timer& member) { return one.add(member, tag), TOCSIN_OK; };
    return with_timer(set, timer, add, __func__);
}
tocsin_status tocsin_wait_set_change_timer(tocsin_wait_set* set, tocsin_wait_timer* timer, uint64_t tag) {
    const auto change = [=](wait_set& one, wait_timer& member) { return one.change(member, tag), TOCSIN_OK; };
    return with_timer(set, timer, change, __func__);
}
tocsin_status tocsin_wait_set_remove_timer(tocsin_wait_set* set, tocsin_wait_timer* timer) {
    const auto remove = [](wait_set& one, wait_timer& member) { return done_if(one.remove(member)); };
    return with_timer(set, timer, remove, __func__);
}

tocsin_status tocsin_wait_set_descriptor(tocsin_wait_set* set, int* descriptor) {
    if (object_at<int>(descriptor) == nullptr)
        return refuse(__func__, "there is no place for the descriptor");
    *descriptor = -1;
    return with_held<wait_set>(set, [=](wait_set& one) {
        *descriptor = one.descriptor();
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_wait_set_wait(tocsin_wait_set* set, const tocsin_limits* how, tocsin_ready_item* items,
                                   size_t capacity, size_t* count) {
    if (object_at<size_t>(count) == nullptr) return refuse(__func__, "`count` is null or misaligned");
    *count = 0;
    if (object_at<tocsin_ready_item>(items) == nullptr || capacity == 0 || !is_valid(how))
        return refuse(__func__, "there is no room for items, or the limits are not valid");
    return with_held<wait_set>(set, [=](wait_set& one) {
        auto* const found = reinterpret_cast<tocsin::ready_item*>(items);
        const tocsin::set_result ended = one.wait(limits_of(how), {found, capacity});
        *count = ended.status == tocsin::wait_status::signaled ? ended.count : 0;
        for (size_t i = *count; i-- != 0;) {
            const tocsin::ready_item item = found[i];
            new (items + i) tocsin_ready_item{item.tag, static_cast<uint32_t>(item.found), 0};
        }
        return status_of(ended.status);
    });
}

tocsin_status tocsin_wait_timer_init(tocsin_wait_timer* timer) { return make<wait_timer>(timer, __func__); }
tocsin_status tocsin_wait_timer_destroy(tocsin_wait_timer* timer) { return destroy<wait_timer>(timer); }
tocsin_status tocsin_wait_timer_reset(tocsin_wait_timer* timer, tocsin_deadline when) {
    if (!is_valid(when)) return refuse(__func__, "no such clock");
    return with<wait_timer>(timer, [&](wait_timer& one) { return one.reset(deadline_of(when)), TOCSIN_OK; });
}
tocsin_status tocsin_wait_timer_cancel(tocsin_wait_timer* timer) {
    return with<wait_timer>(timer, [](wait_timer& one) { return one.cancel(), TOCSIN_OK; });
}
tocsin_status tocsin_wait_timer_reset_every(tocsin_wait_timer* timer, tocsin_deadline first, int64_t period) {
    if (!is_valid(first)) return refuse(__func__, "no such clock");
    return with<wait_timer>(timer, [&](wait_timer& one) {
        return one.reset_every(deadline_of(first), std::chrono::nanoseconds(period)), TOCSIN_OK;
    });
}
uint64_t tocsin_wait_timer_ticks(const tocsin_wait_timer* timer) {
    const wait_timer* const one = object_at<wait_timer>(timer);
    return one != nullptr ? one->ticks() : 0;
}
tocsin_status tocsin_ticker_init(tocsin_ticker* one, tocsin_deadline first, int64_t period) {
    if (!is_valid(first)) return refuse(__func__, "no such clock");
    return make<ticker>(one, __func__, deadline_of(first), std::chrono::nanoseconds(period));
}
tocsin_status tocsin_ticker_destroy(tocsin_ticker* one) { return destroy<ticker>(one); }
uint64_t tocsin_ticker_ticks(const tocsin_ticker* one) {
    const ticker* const found = object_at<ticker>(one);
    return found != nullptr ? found->ticks() : 0;
}
bool tocsin_wait_timer_is_armed(const tocsin_wait_timer* timer) {
    const wait_timer* const one = object_at<wait_timer>(timer);
    return one != nullptr && one->is_armed();
}

tocsin_status tocsin_pollable_init(tocsin_pollable* pollable, const tocsin_source* event_or_semaphore) {
    if (object_at<tocsin_pollable>(pollable) != nullptr) pollable->opaque = nullptr;
    return guarded(__func__, [=, call = __func__] {
        const bool is_source = object_at<tocsin_source>(event_or_semaphore) != nullptr;
        const tocsin::source viewed = is_source ? source_of(*event_or_semaphore) : tocsin::source();
        if (viewed.empty() || viewed.what() != tocsin::source::kind::lot)
            return refuse(call, "the source is no event and no semaphore, or null or misaligned");
        return make_held<tocsin::pollable>(pollable, call, viewed);
    });
}
tocsin_status tocsin_pollable_destroy(tocsin_pollable* pollable) {
    return destroy_held<tocsin::pollable>(pollable);
}
int tocsin_pollable_descriptor(const tocsin_pollable* pollable) {
    const tocsin::pollable* const one = held_at<tocsin::pollable>(pollable);
    return one != nullptr ? one->descriptor() : -1;
}
tocsin_status tocsin_pollable_try_wait(tocsin_pollable* pollable) {
    return with_held<tocsin::pollable>(pollable,
                                       [](tocsin::pollable& one) { return done_if(one.try_wait()); });
}

}  // extern "C"
