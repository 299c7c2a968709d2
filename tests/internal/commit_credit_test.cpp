// SPDX-License-Identifier: Apache-2.0
// When a follower of a group_commit yields before it sleeps (core/wait/commit_credit.hpp).
#include "core/wait/commit_credit.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using tocsin::core::commit_credit;

TEST(CommitCredit, BeginsWithTheFirstLongFlush) {
    commit_credit credit;
    EXPECT_FALSE(credit.allows());
    credit.learn_flush(19us);
    EXPECT_FALSE(credit.allows());
    credit.learn_flush(20us);
    EXPECT_TRUE(credit.allows());
    credit.learn_flush(1us);
    EXPECT_FALSE(credit.allows());
}

TEST(CommitCredit, IsUsedUpByAFewYieldsInVain) {
    commit_credit credit;
    credit.learn_flush(1ms);
    for (int yielded = 0; yielded != 4; ++yielded) {
        EXPECT_TRUE(credit.allows());
        credit.learn(false);
    }
    EXPECT_FALSE(credit.allows());
}

TEST(CommitCredit, LetsOneFollowerOf65TryAgain) {
    commit_credit credit;
    credit.learn_flush(1ms);
    for (int yielded = 0; yielded != 4; ++yielded) credit.learn(false);
    for (int round = 0; round != 3; ++round) {
        for (int refused = 0; refused != 64; ++refused) EXPECT_FALSE(credit.allows());
        EXPECT_TRUE(credit.allows());
    }
    credit.learn(true);
    EXPECT_TRUE(credit.allows()) << "one success is enough";
}

TEST(CommitCredit, LastsAtMostEightYieldsInVainAfterManySuccesses) {
    commit_credit credit;
    credit.learn_flush(1ms);
    for (int yielded = 0; yielded != 1000; ++yielded) credit.learn(true);
    for (int yielded = 0; yielded != 8; ++yielded) {
        EXPECT_TRUE(credit.allows());
        credit.learn(false);
    }
    EXPECT_FALSE(credit.allows());
}

}  // namespace
