// SPDX-License-Identifier: Apache-2.0
// A wait_all in another thread holds an event while the process forks. No thread of the child will ever give the event
// back (event-6 in src/event.cpp).
#include "printing.hpp"

#include <tocsin/event.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;
namespace bits = tocsin::detail::event_state;

// An event whose byte is what such a fork leaves.
template <class Event>
struct left_behind {
    left_behind() { *reinterpret_cast<std::uint8_t*>(&event) = bits::set_bit | bits::held_bit; }
    Event event;
};

template <class Event>
class ForkDuringWaitAll : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(ForkDuringWaitAll, both_events);

template <class Event>
constexpr bool stays_set = std::is_same_v<Event, manual_reset_event>;

TYPED_TEST(ForkDuringWaitAll, LeavesAnEventThatCanBeTriedAndWaitedFor) {
    left_behind<TypeParam> tried;
    EXPECT_TRUE(tried.event.is_set());
    EXPECT_TRUE(tried.event.try_wait());
    EXPECT_EQ(tried.event.is_set(), stays_set<TypeParam>);
    left_behind<TypeParam> waited_for;
    EXPECT_EQ(waited_for.event.wait_for(1ms), wait_status::signaled);
}

TYPED_TEST(ForkDuringWaitAll, LeavesAnEventThatCanBeSetAndReset) {
    left_behind<TypeParam> set;
    set.event.set();
    EXPECT_TRUE(set.event.try_wait());
    left_behind<TypeParam> reset;
    reset.event.reset();
    EXPECT_FALSE(reset.event.is_set());
    EXPECT_EQ(reset.event.wait_for(1ms), wait_status::timed_out);
}

TYPED_TEST(ForkDuringWaitAll, LeavesAnEventThatCanBeOneOfMany) {
    left_behind<TypeParam> one;
    TypeParam other(true);
    EXPECT_EQ(tocsin::wait_all({.until = 1ms}, one.event, other), wait_status::signaled);
    left_behind<TypeParam> first;
    EXPECT_EQ(tocsin::wait_any({.until = 1ms}, first.event, other).index, 0u);
}

TYPED_TEST(ForkDuringWaitAll, LeavesAnEventThatASetAndAViewCanTake) {
    left_behind<TypeParam> in_set;
    tocsin::wait_set set;
    set.add(in_set.event, 3);
    tocsin::ready_item found[1];
    ASSERT_EQ(set.wait({.until = 100ms}, found).count, 1u);
    EXPECT_EQ(found[0].tag, 3u);
    EXPECT_EQ(in_set.event.is_set(), stays_set<TypeParam>);
    left_behind<TypeParam> viewed;
    tocsin::pollable watched(viewed.event);
    EXPECT_TRUE(watched.try_wait());
}

TEST(ForkDuringWaitAllOf, ASemaphoreLeavesItsPermitToASet) {
    tocsin::binary_semaphore permits(1);
    reinterpret_cast<std::uint32_t&>(permits) |= tocsin::detail::semaphore_state::held_bit;
    tocsin::wait_set set;
    set.add(permits, 4);
    tocsin::ready_item found[1];
    ASSERT_EQ(set.wait({.until = 100ms}, found).count, 1u);
    EXPECT_FALSE(permits.try_acquire());
}

}  // namespace
