// SPDX-License-Identifier: Apache-2.0
// Two addresses of one bucket that share a bit of its filter: a wait that ends must not turn off the bit that its
// neighbour relies on. Proof P7.
#include "support/library_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::run;

constexpr auto relaxed = std::memory_order_relaxed;

atomic<std::uint8_t> words[4096]{};

std::uint64_t bit_of(const void* address) {
    return core::key_hash({address, core::wait_kind::address}).filter_bit();
}

// Another word with the same bit as the first.
atomic<std::uint8_t>* neighbour() {
    for (std::size_t i = 1; i != std::size(words); ++i)
        if (bit_of(&words[i]) == bit_of(&words[0])) return &words[i];
    return nullptr;
}

TEST(filter_model, AWaitThatEndsKeepsTheBitOfItsNeighbour) {
    atomic<std::uint8_t>* const mine = &words[0];
    atomic<std::uint8_t>* const theirs = neighbour();
    ASSERT_NE(theirs, nullptr);
    holds_within(2, [=](run& r) {
        r.spawn("leaver", [=] { (void)wait_on_address(theirs, 0, some_time(), sleep_at_once); });
        r.spawn("waiter", [=] {
            while (mine->load(relaxed) == 0) (void)wait_on_address(mine, 0, deadline::never(), sleep_at_once);
        });
        r.spawn("waker", [=] {
            mine->store(1, relaxed);
            (void)wake_by_address_all(mine);
        });
        r.join_all();
    });
}

// A wake does not reach the neighbour's waiter either.
TEST(filter_model, AWakeDoesNotReachTheNeighbour) {
    atomic<std::uint8_t>* const mine = &words[0];
    atomic<std::uint8_t>* const theirs = neighbour();
    ASSERT_NE(theirs, nullptr);
    holds_within(2, [=](run& r) {
        r.spawn("neighbour", [=] {
            const auto how = wait_on_address(theirs, 0, some_time(), sleep_at_once);
            model::check(how == address_status::timed_out, "nobody wakes it");
        });
        r.spawn("waiter", [=] {
            while (mine->load(relaxed) == 0) (void)wait_on_address(mine, 0, deadline::never(), sleep_at_once);
        });
        mine->store(1, relaxed);
        (void)wake_by_address_all(mine);
        r.join_all();
    });
}

}  // namespace
