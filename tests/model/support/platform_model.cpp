// SPDX-License-Identifier: Apache-2.0
// The platform of a model build, without the futex (futex_model.cpp).
#include "library_model.hpp"
#include "platform/futex/repeated_wakes.hpp"
#include "platform/poller/poller.hpp"
#include "platform/poller/readable_flag.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace tocsin {

namespace {
using function = void (*)() noexcept;
constinit function begin_child = nullptr;
constinit bool has_background_threads = false;
}  // namespace

namespace library_model {

background_threads::background_threads() noexcept {
    begin_child();
    has_background_threads = true;
}
background_threads::~background_threads() { has_background_threads = false; }

void sleep_until_raised(reports which) {
    constexpr auto relaxed = std::memory_order_relaxed;
    for (;;) {
        std::uint32_t seen = flag_up;
        if (which == reports::changes) {
            if (the_flag.compare_exchange_strong(seen, flag_up_and_reported, relaxed, relaxed)) return;
        } else {
            seen = the_flag.load(relaxed);
            if (seen != flag_down) return;
        }
        (void)model::futex_wait(&the_flag, seen);
    }
}

}  // namespace library_model

namespace platform {

template <>
void model_poller::after_fork() noexcept {}
template <>
taken_doorbell model_poller::take_doorbell() noexcept {
    return {.id = 0};
}
template <>
void model_poller::give_doorbell_back(doorbell_id) noexcept {}
template <>
void model_poller::ring_doorbell(doorbell_id) noexcept {
    library_model::ring_poll_set != nullptr ? library_model::ring_poll_set()
                                            : library_model::poller::the_one->ring();
}
template <>
poll_result model_poller::poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
    return library_model::poller::the_one->poll(what, bell != no_doorbell, until);
}
template <>
std::unique_ptr<poll_set> model_poller::open_poll_set(int& error) noexcept {
    error = library_model::make_poll_set == nullptr ? ENOSYS : 0;
    return error != 0 ? nullptr : library_model::make_poll_set();
}

int readable_flag::open() noexcept {
    library_model::the_flag.store(library_model::flag_down, std::memory_order_relaxed);
    return 0;
}
void readable_flag::raise() noexcept {
    const auto before = library_model::the_flag.exchange(library_model::flag_up, std::memory_order_relaxed);
    model::check(before != library_model::flag_closed, "nobody raises a flag that is closed");
    model::futex_wake(&library_model::the_flag, 1);
}
void readable_flag::lower() noexcept {
    library_model::the_flag.exchange(library_model::flag_down, std::memory_order_relaxed);
}
void readable_flag::close() noexcept {
    library_model::the_flag.exchange(library_model::flag_closed, std::memory_order_relaxed);
}

void begin_repeated_wakes() noexcept { model::begin_repeated_wakes(); }
void end_repeated_wakes() noexcept { model::end_repeated_wakes(); }
void forget_repeated_wakes() noexcept {}

unsigned processors() noexcept { return library_model::processors; }

void yield_thread() noexcept {}

std::int64_t recent_time() noexcept { return library_model::now; }
std::int64_t boot_time() noexcept { return 0; }  // nobody reads it
std::uint64_t thread_number() noexcept { return static_cast<std::uint64_t>(model::this_thread()); }
std::uint64_t thread_number_or_nickname() noexcept { return thread_number(); }
learnt_number learn_thread_number() noexcept { return {thread_number(), 0}; }
void forget_thread_number() noexcept {}

unsigned thread_urgency(std::int64_t) noexcept { return known_thread_urgency(); }
unsigned known_thread_urgency() noexcept {
    return ordinary_urgency + library_model::urgencies[static_cast<std::size_t>(model::this_thread())];
}
void forget_thread_urgency() noexcept {}
std::uint32_t drawn_number() noexcept { return 0; }

bool exchange_look_due(bool due) noexcept {
    return std::exchange(library_model::looks_due[static_cast<std::size_t>(model::this_thread())], due);
}

void* slot_of_this_thread(thread_slot which) noexcept {
    return library_model::slots[static_cast<std::size_t>(model::this_thread())]
                               [static_cast<std::size_t>(which)];
}
void set_slot_of_this_thread(thread_slot which, void* to) noexcept {
    library_model::slots[static_cast<std::size_t>(model::this_thread())][static_cast<std::size_t>(which)] =
        to;
}

std::uintptr_t thread_mark() noexcept { return static_cast<std::uintptr_t>(model::this_thread()); }

signal_mask signal_mask::current() noexcept { return {}; }
signal_mask signal_mask::exchange() const noexcept { return {}; }

// Every run is to be the same. Any number that spreads the keys over the buckets would do.
std::uint64_t random_number() noexcept { return detail::golden_hash(1); }

void keep_loaded() noexcept {}

int start_thread(void (*run)() noexcept) noexcept {
    if (!has_background_threads) return ENOTSUP;
    model::spawn_service("background", run);
    return 0;
}

bool other_threads_are_gone() noexcept { return false; }
bool is_exiting() noexcept { return false; }
std::int64_t unique_time(std::int64_t time) noexcept { return time; }

// Called while objects of the library are initialised. In a model each run begins as the child of a fork would.
void on_fork_in_child(void (*child)() noexcept) noexcept { begin_child = child; }

void say(const char* message) noexcept { model::note(message); }

void die(const char* message) noexcept {
    model::check(false, message);
    std::abort();
}

void* adopt_first_copy(void* own, std::uint64_t) noexcept { return own; }

}  // namespace platform
}  // namespace tocsin
