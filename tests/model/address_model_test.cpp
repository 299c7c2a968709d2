// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over address waits. Proof P7 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::plain;
using model::run;

constexpr auto relaxed = std::memory_order_relaxed;

MODEL_TEST(address_model, AChangeThenAWakeIsNeverMissed, holds_always) {
    atomic<std::uint32_t> word{0};
    r.spawn("waiter", [&] {
        while (word.load(relaxed) == 0) {
            (void)wait_on_address(&word, 0u, deadline::never(), sleep_at_once);
        }
    });
    r.spawn("waker", [&] {
        word.store(1, relaxed);
        wake_by_address_one(&word);
    });
    r.join_all();
}

MODEL_TEST(address_model, AWakePublishesToTheThreadItReleases, holds_always) {
    atomic<std::uint8_t> word{0};
    plain<int> data{0};
    r.spawn("waiter", [&] {
        if (wait_on_address(&word, 0, deadline::never(), sleep_at_once) == address_status::woken) {
            model::check(data == 42, "what the waker wrote is visible");
        }
    });
    r.spawn("waker", [&] {
        data = 42;
        word.store(1, relaxed);
        wake_by_address_one(&word);
    });
    r.join_all();
}

MODEL_TEST(address_model, AChangedValuePublishesToThreadsThatSeeIt, holds_always) {
    atomic<std::uint64_t> word{0};
    plain<int> data{0};
    r.spawn("waiter", [&] {
        const auto [status, value] = wait_until_changed(&word, 0, deadline::never(), {}, sleep_at_once);
        model::check(status == wait_status::signaled && value == 1 && data == 42,
                     "the new value, and what was written before it");
    });
    r.spawn("waker", [&] {
        data = 42;
        word.store(1, std::memory_order_release);
        wake_by_address_one(&word);
    });
    r.join_all();
}

MODEL_TEST(address_model, TwoWakesReleaseTwoWaiters, holds_within, 2) {
    atomic<std::uint16_t> word{0};
    int woken = 0;
    std::size_t released = 0;
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            if (wait_on_address(&word, 0, deadline::never(), sleep_at_once) == address_status::woken) ++woken;
        });
    }
    r.spawn("waker", [&] {
        word.store(1, relaxed);
        released += wake_by_address_one(&word);
        released += wake_by_address_one(&word);
    });
    r.join_all();
    r.check(static_cast<std::size_t>(woken) == released, "as many woke as were released");
}

MODEL_TEST(address_model, ATimeoutNeverEatsAWake, holds_within, 2) {
    atomic<std::uint32_t> word{0};
    std::size_t released = 0;
    std::size_t woken = 0;
    r.spawn("timed", [&] {
        if (wait_on_address(&word, 0u, some_time(), sleep_at_once) == address_status::woken) ++woken;
    });
    r.spawn("patient", [&] {
        if (wait_on_address(&word, 0u, deadline::never(), sleep_at_once) == address_status::woken) ++woken;
    });
    r.spawn("waker", [&] {
        word.store(1, relaxed);
        released += wake_by_address_one(&word);
        released += wake_by_address_n(&word, 5);
    });
    r.join_all();
    r.check(woken == released, "as many woke as were released");
}

// Waiters on a neighbour in the same bucket, with the same filter bit, are never touched.
MODEL_TEST(address_model, AWakeReachesItsOwnAddressOnly, holds_within, 2) {
    atomic<std::uint8_t> words[2]{};
    r.spawn("neighbour", [&] {
        model::check(wait_on_address(&words[1], 0, some_time(), sleep_at_once) == address_status::timed_out,
                     "nobody woke the neighbour");
    });
    r.spawn("waiter", [&] {
        while (words[0].load(relaxed) == 0) {
            (void)wait_on_address(&words[0], 0, deadline::never(), sleep_at_once);
        }
    });
    r.spawn("waker", [&] {
        words[0].store(1, relaxed);
        wake_by_address_all(&words[0]);
    });
    r.join_all();
}

// One waiter, and one change that wakes it. In `change` the word goes from 6 to another value.
void never_missed(void (*change)(atomic<std::uint32_t>&)) {
    holds_always([change](run& r) {
        atomic<std::uint32_t> word{6};
        r.spawn("waiter", [&] {
            while (word.load(relaxed) == 6) {
                (void)wait_on_address(&word, 6u, deadline::never(), sleep_at_once);
            }
        });
        r.spawn("waker", [&] { change(word); });
        r.join_all();
    });
}

TEST(address_model, AStoreThatWakesIsNeverMissed) {
    never_missed([](auto& word) { store(&word, 1, wake_one); });
}
TEST(address_model, AnExchangeThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(exchange(&word, 1, wake_all) == 6, "the old value"); });
}
TEST(address_model, ACompareExchangeThatWakesIsNeverMissed) {
    never_missed([](auto& word) {
        std::uint32_t expected = 6;
        model::check(compare_exchange(&word, expected, 1, wake_one), "nobody else changes it");
    });
}
TEST(address_model, AFetchAddThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(fetch_add(&word, 1, wake_one) == 6, "the old value"); });
}
TEST(address_model, AFetchSubThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(fetch_sub(&word, 1, wake_one) == 6, "the old value"); });
}
TEST(address_model, AFetchAndThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(fetch_and(&word, 4, wake_n(2)) == 6, "the old value"); });
}
TEST(address_model, AFetchOrThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(fetch_or(&word, 1, wake_one) == 6, "the old value"); });
}
TEST(address_model, AFetchXorThatWakesIsNeverMissed) {
    never_missed([](auto& word) { model::check(fetch_xor(&word, 3, wake_one) == 6, "the old value"); });
}

// A thread that sees the new value sees what was written before it, whether it was woken or came late.
MODEL_TEST(address_model, AChangeThatWakesPublishes, holds_always) {
    atomic<std::uint16_t> word{0};
    plain<int> data{0};
    r.spawn("waiter", [&] {
        const auto [status, value] = wait_until_changed(&word, 0, deadline::never(), {}, sleep_at_once);
        model::check(status == wait_status::signaled && value == 1 && data == 42,
                     "the new value, and what was written before it");
    });
    r.spawn("waker", [&] {
        data = 42;
        fetch_add(&word, 1, wake_one);
    });
    r.join_all();
}

MODEL_TEST(address_model, ACompareExchangeThatFailsWakesNobody, holds_always) {
    atomic<std::uint32_t> word{6};
    r.spawn("waiter", [&] {
        model::check(wait_on_address(&word, 6u, some_time(), sleep_at_once) == address_status::timed_out,
                     "nobody wakes it");
    });
    r.spawn("waker", [&] {
        std::uint32_t expected = 5;
        model::check(!compare_exchange(&word, expected, 1, wake_all) && expected == 6,
                     "it is told the value");
    });
    r.join_all();
}

// Of two waiters, as many are released as the change says.
MODEL_TEST(address_model, AChangeThatWakesOneWakesNoMore, holds_within, 2) {
    atomic<std::uint8_t> word{0};
    int woken = 0;
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            if (wait_on_address(&word, 0, some_time(), sleep_at_once) == address_status::woken) ++woken;
        });
    }
    r.spawn("waker", [&] { store(&word, 1, wake_one); });
    r.join_all();
    r.check(woken <= 1, "one at most");
}

MODEL_TEST(address_model, AChangeThatWakesAllReachesTwoWaiters, holds_within, 2) {
    atomic<std::uint32_t> word{6};
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            while (word.load(relaxed) == 6)
                (void)wait_on_address(&word, 6u, deadline::never(), sleep_at_once);
        });
    }
    r.spawn("waker", [&] { exchange(&word, 1, wake_all); });
    r.join_all();
}

// Two changes race, and the waiter must see both.
MODEL_TEST(address_model, ChangesThatRaceMissNobody, holds_within, 2) {
    atomic<std::uint32_t> word{0};
    r.spawn("waiter", [&] {
        for (auto seen = word.load(relaxed); seen != 2; seen = word.load(relaxed))
            (void)wait_on_address(&word, seen, deadline::never(), sleep_at_once);
    });
    for (const char* name : {"waker 1", "waker 2"}) r.spawn(name, [&] { fetch_add(&word, 1, wake_all); });
    r.join_all();
}

// The owner deletes the word as soon as it sees the change.
template <class Wake>
void the_word_may_be_gone(Wake change_and_wake) {
    holds_always([change_and_wake](run& r) {
        auto* word = new atomic<std::uint32_t>(0);
        r.spawn("owner", [word] {
            while (word->load(std::memory_order_acquire) == 0) {
                (void)wait_on_address(word, 0u, deadline::never(), sleep_at_once);
            }
            delete word;
        });
        r.spawn("waker", [word, change_and_wake] { change_and_wake(word); });
        r.join_all();
    });
}

TEST(address_model, TheWordMayBeGoneWhenAChangeWakes) {
    the_word_may_be_gone([](atomic<std::uint32_t>* word) { store(word, 1, wake_one); });
}

TEST(address_model, TheWordMayBeGoneBeforeTheWake) {
    the_word_may_be_gone([](atomic<std::uint32_t>* word) {
        word->store(1, std::memory_order_release);
        wake_by_address_one(word);
    });
}

}  // namespace
