// SPDX-License-Identifier: Apache-2.0
// The lists of parked waits show who waits for an object that processes share.
#include "shared_objects.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using support::thread_group;
using support::until_parked;
using tocsin::parked_wait;
using tocsin::waiting_on;

std::vector<parked_wait> parked_on(const void* address) {
    auto all = tocsin::parked_waits();
    std::erase_if(all, [&](const parked_wait& each) { return each.address != address; });
    return all;
}

// Two threads wait for the object, until `release` is called, once for each of them. They are shown as long as they
// wait, under this type.
template <class Object, class Wait, class Release>
void expect_shown(Object& object, const char* type, Wait wait, Release release) {
    EXPECT_EQ(waiting_on(&object), 0u);
    const auto begin = std::chrono::steady_clock::now();
    thread_group threads;
    for (std::size_t i = 1; i <= 2; ++i) {
        threads.start("waiter", [&] { wait(object); });
        until_parked(&object, i);
    }
    const auto end = std::chrono::steady_clock::now();
    tocsin::name_address(&object, "between");
    const std::vector<parked_wait> rows = parked_on(&object);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_NE(rows[0].thread, rows[1].thread);
    for (const parked_wait& each : rows) {
        EXPECT_EQ(each.what, parked_wait::kind::source);
        EXPECT_STREQ(each.type, type);
        EXPECT_EQ(each.name, "between");
        EXPECT_EQ(each.owner, 0u);
        EXPECT_GE(each.since, begin);
        EXPECT_LE(each.since, end);
    }
    EXPECT_NE(tocsin::describe_parked_waits().find(" 'between': thread " + std::to_string(rows[0].thread)),
              std::string::npos);
    EXPECT_NE(tocsin::parked_waits_as_json().find(std::string("{\"type\":\"") + type), std::string::npos);
    tocsin::name_address(&object, "");
    for (int i = 0; i != 2; ++i) release(object);
    threads.join();
    EXPECT_EQ(waiting_on(&object), 0u);
    EXPECT_TRUE(parked_on(&object).empty());
}

TEST(SharedDiagnose, ShowsWhoWaitsForAManualResetEvent) {
    placed<tocsin::shared_manual_reset_event> event;
    expect_shown(
        *event, "shared_manual_reset_event", [](auto& one) { one.wait(); }, [](auto& one) { one.set(); });
}

TEST(SharedDiagnose, ShowsWhoWaitsForAnAutoResetEvent) {
    placed<tocsin::shared_auto_reset_event> event;
    expect_shown(
        *event, "shared_auto_reset_event", [](auto& one) { one.wait(); }, [](auto& one) { one.set(); });
}

TEST(SharedDiagnose, ShowsWhoWaitsForASemaphore) {
    placed<tocsin::shared_semaphore> permits;
    expect_shown(
        *permits, "shared_semaphore", [](auto& one) { one.acquire(); }, [](auto& one) { one.release(); });
}

TEST(SharedDiagnose, ShowsWhoWaitsForALock) {
    placed<tocsin::shared_lock> lock;
    ASSERT_EQ(lock->lock(), tocsin::lock_status::acquired);
    bool is_held = true;
    expect_shown(
        *lock, "shared_lock",
        [](auto& one) {
            EXPECT_EQ(one.lock(), tocsin::lock_status::acquired);
            one.unlock();
        },
        [&](auto& one) {
            if (std::exchange(is_held, false)) one.unlock();
        });
}

TEST(SharedDiagnose, ShowsAWaitForSeveralOnce) {
    placed<tocsin::shared_semaphore> permits;
    tocsin::auto_reset_event local;
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(tocsin::wait_any(local, *permits).index, 1u); });
    until_parked(&*permits, 1);
    EXPECT_EQ(waiting_on(&*permits), 1u);
    EXPECT_STREQ(parked_on(&*permits).at(0).type, "shared_semaphore");
    permits->release();
    threads.join();
    EXPECT_EQ(waiting_on(&*permits), 0u);
}

TEST(SharedDiagnose, AWaitThatEndsOtherwiseIsNoLongerShown) {
    placed<tocsin::shared_manual_reset_event> opened;
    placed<tocsin::shared_auto_reset_event> event;
    placed<tocsin::shared_lock> lock;
    ASSERT_EQ(lock->lock(), tocsin::lock_status::acquired);
    std::stop_source stop;
    thread_group threads;
    threads.start("gate", [&] { EXPECT_EQ(opened->wait(stop.get_token()), tocsin::wait_status::stopped); });
    threads.start("token", [&] { EXPECT_EQ(event->wait(stop.get_token()), tocsin::wait_status::stopped); });
    threads.start("lock", [&] { EXPECT_EQ(lock->lock(stop.get_token()), tocsin::lock_status::stopped); });
    for (const void* each : {static_cast<const void*>(&*opened), static_cast<const void*>(&*event),
                             static_cast<const void*>(&*lock)})
        until_parked(each, 1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(opened->wait_for(1ms), tocsin::wait_status::timed_out);
    EXPECT_EQ(event->wait_for(1ms), tocsin::wait_status::timed_out);
    EXPECT_EQ(waiting_on(&*opened) + waiting_on(&*event) + waiting_on(&*lock), 0u);
    lock->unlock();
}

TEST(SharedDiagnose, AChildOfAForkShowsItsOwnWaitsOnly) {
    placed<tocsin::shared_auto_reset_event> event;
    thread_group threads;
    threads.start("waiter", [&] { event->wait(); });
    until_parked(&*event, 1);
    // Under AddressSanitizer all other threads sleep at the moment of the fork, so the waiter does, too.
    const pid_t child = in_child([&] {
        if (waiting_on(&*event) != 0) ::_exit(1);
        if (event->wait_for(1ms) != tocsin::wait_status::timed_out || waiting_on(&*event) != 0) ::_exit(2);
    });
    EXPECT_EQ(end_of(child), 0);
    EXPECT_EQ(waiting_on(&*event), 1u);
    event->set();
    threads.join();
}

}  // namespace
