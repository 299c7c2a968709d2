// SPDX-License-Identifier: Apache-2.0
// What an event's calls do without entering the library. This program has its own versions of the functions that they
// enter it by, and these count.
#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>

namespace {

int entered = 0;

}  // namespace

namespace tocsin::detail {

wait_status event_wait_slow(event_byte&, reset_mode, const wait_options&) noexcept {
    ++entered;
    return wait_status::timed_out;
}
void event_set_slow(event_byte&, reset_mode, wake_list*) noexcept { ++entered; }
void event_reset_slow(event_byte&) noexcept { ++entered; }
bool event_is_set_slow(const event_byte&) noexcept { return ++entered != 0; }
bool event_try_wait_slow(event_byte&, reset_mode) noexcept { return ++entered != 0; }
void event_check_destroyed(const event_byte&, const char*) noexcept {}

}  // namespace tocsin::detail

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using tocsin::wait_status;

template <class Event>
class EventInline : public testing::Test {
    void SetUp() override { entered = 0; }
};
using events = testing::Types<tocsin::auto_reset_event, tocsin::manual_reset_event>;
TYPED_TEST_SUITE(EventInline, events, );

TYPED_TEST(EventInline, APollOfAnUnsetEventDoesNotEnterTheLibrary) {
    TypeParam event;
    EXPECT_FALSE(event.try_wait());
    EXPECT_FALSE(event.is_set());
    for (const auto time : {0s, -1s}) {
        EXPECT_EQ(event.wait_for(time), wait_status::timed_out);
        EXPECT_EQ(event.wait_until(time), wait_status::timed_out);
    }
    EXPECT_EQ(event.wait_until(steady_clock::time_point{}), wait_status::timed_out);
    EXPECT_EQ(event.wait_until((steady_clock::time_point::min)()), wait_status::timed_out);
    EXPECT_EQ(event.wait_until(system_clock::time_point{}), wait_status::timed_out);
    EXPECT_EQ(entered, 0);
    EXPECT_EQ(event.wait_for(1h), wait_status::timed_out) << "the count works";
    EXPECT_EQ(entered, 1);
}

TYPED_TEST(EventInline, NorDoesAPollWithAStopToken) {
    TypeParam event;
    std::stop_source source;
    const auto stop = source.get_token();
    const auto polls_end_with = [&](wait_status how) {
        for (const auto time : {0s, -1s}) {
            EXPECT_EQ(event.wait_for(time, stop), how);
            EXPECT_EQ(event.wait_until(time, stop), how);
        }
        EXPECT_EQ(event.wait_until(steady_clock::time_point{}, stop), how);
        EXPECT_EQ(event.wait_until(system_clock::time_point{}, stop), how);
    };
    polls_end_with(wait_status::timed_out);
    source.request_stop();
    polls_end_with(wait_status::stopped);
    event.set();
    EXPECT_EQ(event.wait_for(0s, stop), wait_status::signaled) << "the event comes first";
    EXPECT_EQ(entered, 0);
    event.reset();
    EXPECT_EQ(event.wait_for(1h, stop), wait_status::timed_out) << "the count works";
    EXPECT_EQ(event.wait_until(steady_clock::now() + 1h, stop), wait_status::timed_out);
    EXPECT_EQ(entered, 2);
}

TYPED_TEST(EventInline, SetAndWaitDoNotEnterTheLibraryIfNobodyWaits) {
    TypeParam event;
    for (int i = 0; i != 3; ++i) {
        event.set();
        event.wait();
        event.reset();
        event.set();
        EXPECT_EQ(event.wait_for(1h), wait_status::signaled);
        event.reset();
    }
    EXPECT_EQ(entered, 0);
}

}  // namespace
