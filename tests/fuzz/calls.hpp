// The language of the fuzzer's programs: steps, each of a few calls that run at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fuzz {

constexpr std::size_t actors = 7;  // threads: as many waits as it takes to relay a broadcast, and a setter

// Objects are numbered: two auto-reset events, two manual-reset events, three words of which two are
// neighbours, three locks of which two are bits of one word.
constexpr std::size_t first_token = 0;
constexpr std::size_t first_gate = 2;
constexpr std::size_t first_word = 4;
constexpr std::size_t first_lock = 7;
constexpr std::size_t objects = 10;

enum class verb : std::uint8_t {
    // of events
    set,
    reset,
    is_set,
    try_wait,
    wait,
    // of words
    store,
    wake_one,
    wake_two,
    wake_all,
    wait_on_address,
    // of locks
    try_lock,
    lock,
    unlock,
    // of another actor's wait
    stop
};

enum class patience : std::uint8_t { none, little, endless };

struct call {
    verb what = verb::set;
    std::size_t actor = 0;
    std::size_t object = 0;
    patience until = patience::none;  // of wait, wait_on_address and lock
    bool stoppable = false;           // of wait and wait_on_address
    unsigned flavour = 0;             // which of several equivalent forms the real call has
    std::uint8_t value = 0;           // to store, or expected
    std::size_t victim = 0;           // of stop
    unsigned delay = 0;               // microseconds after the others of its step

    auto operator<=>(const call&) const = default;
};

// What a call returns.
enum class result : std::uint8_t {
    none,
    // is_set, try_wait, try_lock, lock
    yes,
    no,
    // wait and wait_on_address
    signaled,
    timed_out,
    stopped,
    woken,
    differed,
    // wake_*: and so on, to released_0 + actors
    released_0
};

inline result released(std::size_t count) {
    return static_cast<result>(static_cast<std::size_t>(result::released_0) + count);
}

std::string name_of(result what);
std::string text_of(const call& what);

}  // namespace fuzz
