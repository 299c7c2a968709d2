// SPDX-License-Identifier: Apache-2.0
// The language of the fuzzer's programs: steps, each of a few calls that run at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fuzz {

constexpr std::size_t actors = 7;  // threads: as many waits as it takes to relay a broadcast, and a setter

// Objects are numbered: two auto-reset events, two manual-reset events, two semaphores, three words of which two are
// neighbours, channels of the capacities 0, 1 and 3, two latches, a condition with a lock of its own, three locks of
// which two are bits of one word.
constexpr std::size_t first_gate = 2;
constexpr std::size_t first_semaphore = 4;
constexpr std::size_t first_word = 6;
constexpr std::size_t first_channel = 9;
constexpr std::size_t first_latch = 12;
constexpr std::size_t first_condition = 14;
constexpr std::size_t first_lock = 15;
constexpr std::size_t objects = 18;

constexpr std::array<std::size_t, first_latch - first_channel> capacities{0, 1, 3};
constexpr std::array<std::uint8_t, first_condition - first_latch> expected_arrivals{2, 5};

// Locks behind the first one are bits of one word, so they are one address.
constexpr std::size_t addresses = first_lock + 2;

constexpr bool is_latch(std::size_t object) { return object >= first_latch && object < first_condition; }

enum class verb : std::uint8_t {
    // of events
    set,
    reset,
    is_set,
    try_wait,
    wait,
    // of semaphores
    release,
    try_acquire,
    acquire,
    // of words
    store,
    wake_one,
    wake_two,
    wake_all,
    wait_on_address,
    // of channels
    try_send,
    send,
    try_receive,
    receive,
    receive_either,  // from the first channel or the second
    close,
    // of latches; they have try_wait and wait, too
    count_down,
    // of the condition
    wait_notified,
    notify_one,
    notify_all,
    // of locks
    try_lock,
    lock,
    unlock,
    // of another actor's wait
    stop
};

enum class patience : std::uint8_t { none, little, endless };

struct call {
    verb action = verb::set;
    std::size_t actor = 0;
    std::size_t object = 0;
    patience until = patience::none;  // of all calls that wait
    bool stoppable = false;           // of all that wait, except lock
    bool by_operation = false;        // of wait, and of acquire of one permit: the wait blocks no thread
    unsigned flavour = 0;             // which of several equivalent forms the real call has
    std::uint8_t value = 0;           // to store or send, or expected; one less than the permits or arrivals
    std::size_t victim = 0;           // of stop
    unsigned delay = 0;               // microseconds after the others of its step

    std::size_t permits() const { return value + std::size_t{1}; }
    std::uint8_t arrivals() const { return static_cast<std::uint8_t>(value + 1); }

    auto operator<=>(const call&) const = default;
};

// What a call returns.
enum class result : std::uint8_t {
    none,
    // is_set, try_wait, try_acquire, try_send, try_receive, close, try_lock, lock
    yes,
    no,
    // all that wait, except lock
    signaled,
    timed_out,
    stopped,
    woken,
    differed,
    closed,
    // receives: and so on, to received_0 + 2; of receive_either three more, if the second channel gave the item
    received_0,
    received_5 = received_0 + 5,
    // wake_*: and so on, to released_0 + actors
    released_0
};

constexpr std::uint8_t values = 3;  // 0, 1 and 2

inline result received(std::uint8_t value, bool from_second) {
    return static_cast<result>(static_cast<std::size_t>(result::received_0) + value +
                               (from_second ? values : 0));
}

inline result released(std::size_t count) {
    return static_cast<result>(static_cast<std::size_t>(result::released_0) + count);
}

bool may_wait(verb what);
std::string name_of(result what);
std::string text_of(const call& what);

}  // namespace fuzz
