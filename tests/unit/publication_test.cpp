// SPDX-License-Identifier: Apache-2.0
// A call that finds an event set, or a word changed, makes visible what the other thread wrote before, even if it only
// looked once and did not wait. Under ThreadSanitizer a missing acquire is a data race here: nothing else orders the
// two threads.
#include "facts.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace {

using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

// The writer writes and publishes. Then a relaxed flag, which orders nothing, tells the reader to look once and read.
template <class Publish, class Look>
void look_once(Publish publish, Look look) {
    int data = 0;
    std::atomic<bool> is_published{false};
    thread_group threads;
    threads.start("reader", [&] {
        support::until("the other to publish", [&] { return is_published.load(std::memory_order_relaxed); });
        EXPECT_TRUE(look());
        EXPECT_EQ(data, 1);
    });
    threads.start("writer", [&] {
        data = 1;
        publish();
        is_published.store(true, std::memory_order_relaxed);
    });
    threads.join();
}

template <class Event, class Look>
void look_at_a_set_event(Look look) {
    Event event;
    look_once([&] { event.set(); }, [&] { return look(event); });
}

template <class Event>
class Publication : public testing::Test {};

using events = testing::Types<auto_reset_event, manual_reset_event>;
TYPED_TEST_SUITE(Publication, events);

TYPED_TEST(Publication, IsSeenByALookAtASetEvent) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) { return event.is_set(); });
}

TYPED_TEST(Publication, IsSeenByATryWait) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) { return event.try_wait(); });
}

TYPED_TEST(Publication, IsSeenByAWaitThatEndsAtOnce) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) { return event.wait(), true; });
}

TYPED_TEST(Publication, IsSeenByAWaitForAnyThatEndsAtOnce) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) {
        manual_reset_event other;
        return tocsin::wait_any(other, event).index == 1;
    });
}

TYPED_TEST(Publication, IsSeenByAWaitForAnyOfAListThatEndsAtOnce) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) {
        const std::array only{tocsin::source(event)};
        return tocsin::wait_any(only).index == 0;
    });
}

TYPED_TEST(Publication, IsSeenByAWaitForAllThatEndsAtOnce) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) {
        manual_reset_event other(true);
        return tocsin::wait_all(other, event), true;
    });
}

TYPED_TEST(Publication, IsSeenByAWaitInASetThatEndsAtOnce) {
    look_at_a_set_event<TypeParam>([](TypeParam& event) {
        tocsin::wait_set set;
        set.add(event, 1);
        std::array<tocsin::ready_item, 1> found;
        return set.wait(found).count == 1;
    });
}

TEST(Publication, IsSeenByAReset) {
    manual_reset_event event;
    look_once([&] { event.set(); }, [&] { return event.reset(), true; });
}

// A std::atomic and a plain word: the library looks at both through std::atomic_ref.
template <class Word>
class AddressPublication : public testing::Test {};

using words = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(AddressPublication, words);

TYPED_TEST(AddressPublication, IsSeenByAWaitThatFindsAnotherValue) {
    std::atomic<TypeParam> word{0};
    look_once(
        [&] { word.store(1, std::memory_order_release); },
        [&] { return tocsin::wait_on_address(&word, TypeParam{0}) == tocsin::address_status::differed; });
}

TYPED_TEST(AddressPublication, IsSeenByATimedWaitThatFindsAnotherValue) {
    std::atomic<TypeParam> word{0};
    look_once([&] { word.store(1, std::memory_order_release); },
              [&] {
                  return tocsin::wait_on_address(&word, TypeParam{0}, std::chrono::seconds(1)) ==
                         tocsin::address_status::differed;
              });
}

TYPED_TEST(AddressPublication, IsSeenByAWaitForAChange) {
    std::atomic<TypeParam> word{0};
    look_once([&] { word.store(1, std::memory_order_release); },
              [&] { return tocsin::wait_until_changed(&word, TypeParam{0}) == 1; });
}

}  // namespace
