// SPDX-License-Identifier: Apache-2.0
// When the library enlarges the kernel's table of sleeping threads (platform/futex/table_growth.hpp). The kernel here
// is made up, so the test runs on every system.
#include "platform/futex/table_growth.hpp"

#include <tocsin/deadline.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace {

using namespace std::chrono_literals;
using tocsin::deadline;
using tocsin::platform::table_growth;

struct kernel {
    long has = 16;
    long running = 1'000;
    long usual = 16;
    bool urgent = false;
    bool refuses = false;

    int asked = 0;
    int sets = 0;

    long slots() {
        ++asked;
        return has;
    }
    long usual_slots() const { return usual; }
    long threads() const { return running; }
    bool is_urgent() const { return urgent; }
    bool set_slots(std::uint32_t wanted) {
        ++sets;
        if (!refuses) has = wanted;
        return !refuses;
    }
};

// Counts until the next look is over.
void look(table_growth& growth, kernel& on, const deadline& until = deadline::never()) {
    for (std::uint32_t i = 0; i != table_growth::counts_a_look; ++i) growth.count(until, on);
}

TEST(TableGrowth, AsksTheKernelOnceIn64Counts) {
    table_growth growth;
    kernel here{.running = 10};
    for (std::uint32_t i = 0; i != 10 * table_growth::counts_a_look; ++i)
        growth.count(deadline::never(), here);
    EXPECT_EQ(here.asked, 10);
    EXPECT_EQ(here.sets, 0);
}

TEST(TableGrowth, GrowsWhenSixteenThreadsShareASlot) {
    table_growth growth;
    kernel here{.running = 255};
    look(growth, here);
    EXPECT_EQ(here.has, 16);
    here.running = 256;
    look(growth, here);
    EXPECT_EQ(here.has, 1'024);
    here.running = 16'383;
    look(growth, here);
    EXPECT_EQ(here.has, 1'024);
    here.running = 16'384;
    look(growth, here);
    EXPECT_EQ(here.has, 65'536);
    EXPECT_EQ(here.sets, 2);
}

TEST(TableGrowth, HasMostSlotsAfterOneCallIfTheThreadsAreMany) {
    table_growth growth;
    kernel here{.running = 4'000'000};
    look(growth, here);
    EXPECT_EQ(here.has, table_growth::max_slots);
    look(growth, here);
    EXPECT_EQ(here.sets, 1);
    const int asked = here.asked;
    look(growth, here);
    EXPECT_EQ(here.asked, asked) << "there is nothing left to do";
}

TEST(TableGrowth, NeverMakesTheTableSmaller) {
    table_growth growth;
    kernel here;
    look(growth, here);
    const long grown = here.has;
    here.running = 2;
    for (int i = 0; i != 10; ++i) look(growth, here);
    EXPECT_EQ(here.has, grown);
}

TEST(TableGrowth, AnOlderKernelIsAskedOnce) {
    table_growth growth;
    kernel older{.has = -1};
    for (int i = 0; i != 10; ++i) look(growth, older);
    EXPECT_EQ(older.asked, 1);
    EXPECT_EQ(older.sets, 0);
}

TEST(TableGrowth, LeavesTheGlobalTableAlone) {
    table_growth growth;
    kernel global{.has = 0};
    for (int i = 0; i != 10; ++i) look(growth, global);
    EXPECT_EQ(global.asked, 1);
    EXPECT_EQ(global.sets, 0);
}

TEST(TableGrowth, LeavesASizeThatTheProgramHasSet) {
    table_growth growth;
    kernel here{.has = 32, .running = 100'000};
    for (int i = 0; i != 10; ++i) look(growth, here);
    EXPECT_EQ(here.sets, 0);
    EXPECT_EQ(here.asked, 1);

    table_growth on_eight_processors;
    kernel usual{.has = 32, .running = 100'000, .usual = 32};
    look(on_eight_processors, usual);
    EXPECT_EQ(usual.sets, 1);
}

TEST(TableGrowth, LeavesASizeThatTheProgramHasSetAfterwards) {
    table_growth growth;
    kernel here;
    look(growth, here);
    here.has = 512;
    here.running = 100'000;
    look(growth, here);
    EXPECT_EQ(here.has, 512);
}

TEST(TableGrowth, OfTwoCopiesOneSetsTheSize) {
    table_growth one;
    table_growth other;
    kernel shared;
    look(one, shared);
    look(other, shared);
    EXPECT_EQ(shared.sets, 1);
    shared.running = 70'000;
    look(other, shared);
    EXPECT_EQ(shared.sets, 1);
    look(one, shared);
    EXPECT_EQ(shared.has, 65'536);
}

// A frozen table, a filter that refuses the call, no memory.
TEST(TableGrowth, ARefusedCallIsNotRepeated) {
    table_growth growth;
    kernel here{.refuses = true};
    for (int i = 0; i != 10; ++i) look(growth, here);
    EXPECT_EQ(here.sets, 1);
    EXPECT_EQ(here.asked, 1);
}

TEST(TableGrowth, WithoutProcNothingIsSet) {
    table_growth growth;
    kernel here{.running = -1};
    for (int i = 0; i != 10; ++i) look(growth, here);
    EXPECT_EQ(here.asked, 1);
    EXPECT_EQ(here.sets, 0);
}

TEST(TableGrowth, AThreadWithANearDeadlineLeavesTheCallToAnother) {
    table_growth growth;
    kernel here;
    look(growth, here, deadline(50ms));
    EXPECT_EQ(here.sets, 0);
    look(growth, here, deadline(std::chrono::hours(1)));
    EXPECT_EQ(here.sets, 1);
}

TEST(TableGrowth, ARealTimeThreadLeavesTheCallToAnother) {
    table_growth growth;
    kernel here{.urgent = true};
    look(growth, here);
    EXPECT_EQ(here.sets, 0);
    here.urgent = false;
    look(growth, here);
    EXPECT_EQ(here.sets, 1);
}

TEST(TableGrowth, AProgramMayForbidIt) {
    table_growth growth;
    EXPECT_TRUE(growth.is_allowed());
    growth.allow(false);
    EXPECT_FALSE(growth.is_allowed());
    kernel here;
    for (int i = 0; i != 10; ++i) look(growth, here);
    EXPECT_EQ(here.asked, 0);
    growth.allow(true);
    look(growth, here);
    EXPECT_EQ(here.sets, 1);
}

TEST(TableGrowth, BeginsAnewInTheChildOfAFork) {
    table_growth growth;
    kernel parents;
    look(growth, parents);
    ASSERT_EQ(parents.sets, 1);
    growth.begin_anew();
    kernel in_child;
    look(growth, in_child);
    EXPECT_EQ(in_child.has, 4'096);

    growth.begin_anew();
    kernel with_a_size_of_its_own{.has = 4'096, .running = 100'000};
    look(growth, with_a_size_of_its_own);
    EXPECT_EQ(with_a_size_of_its_own.sets, 0) << "the size is the child's, although it equals the parent's";
}

}  // namespace
