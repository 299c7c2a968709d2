// SPDX-License-Identifier: Apache-2.0
// When a thread that waits for permits yields before it queues (core/wait/turn_credit.hpp).
#include "core/wait/turn_credit.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using tocsin::core::turn_credit;

constexpr std::uint16_t mine = 7;
constexpr std::uint16_t of_another = 8;
constexpr std::uint32_t beginning = 0xFFFF'FFF0;  // so that times overflow

void take_turn(turn_credit& credit, std::uint32_t nanoseconds = 100) {
    credit.begin_turn(mine, beginning);
    credit.end_turn(mine, beginning + nanoseconds);
}

// How many waits the credit allows one after the other, all with this outcome. At most a thousand.
int allowed_in_a_row(turn_credit& credit, bool taken, bool late) {
    int allowed = 0;
    while (allowed != 1'000 && credit.allows()) {
        credit.learn(taken, late);
        ++allowed;
    }
    return allowed;
}

TEST(TurnCredit, BeginsWithABriefTurn) {
    turn_credit credit;
    EXPECT_FALSE(credit.allows());
    take_turn(credit, turn_credit::brief + 1);
    EXPECT_FALSE(credit.allows());
    take_turn(credit, turn_credit::brief);
    EXPECT_TRUE(credit.allows());
}

TEST(TurnCredit, DoesNotBeginIfAnotherThreadReleases) {
    turn_credit credit;
    credit.begin_turn(mine, beginning);
    credit.end_turn(of_another, beginning + 100);
    EXPECT_FALSE(credit.allows());
}

TEST(TurnCredit, LastsWhileYieldsSucceedSoon) {
    turn_credit credit;
    take_turn(credit);
    EXPECT_EQ(allowed_in_a_row(credit, true, false), 1'000);
}

TEST(TurnCredit, IsUsedUpByYieldsThatAreLateOrInVain) {
    struct outcome {
        bool taken;
        bool late;
        int allowed;
    };
    for (const auto& each : {outcome{true, true, 200}, {false, false, 100}, {false, true, 50}}) {
        turn_credit credit;
        take_turn(credit);
        EXPECT_EQ(allowed_in_a_row(credit, each.taken, each.late), each.allowed);
    }
}

TEST(TurnCredit, PassesOverSomeTurnsBeforeItBeginsAgain) {
    turn_credit credit;
    for (int round = 0; round != 3; ++round) {
        take_turn(credit);
        EXPECT_EQ(allowed_in_a_row(credit, false, true), 50);
        for (int passed_over = 0; passed_over != 32; ++passed_over) {
            take_turn(credit);
            EXPECT_FALSE(credit.allows());
        }
    }
}

}  // namespace
