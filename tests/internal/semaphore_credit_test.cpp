// SPDX-License-Identifier: Apache-2.0
// When a thread that waits for permits yields before it queues (core/wait/semaphore_credit.hpp).
#include "core/wait/semaphore_credit.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using tocsin::core::semaphore_credit;

constexpr std::uint16_t mine = 7;
constexpr std::uint16_t of_another = 8;
constexpr std::uint32_t beginning = 0xFFFF'FFF0;  // so that times overflow

void use_permit(semaphore_credit& credit, std::uint32_t nanoseconds = 100) {
    credit.begin_use(mine, beginning);
    credit.end_use(mine, beginning + nanoseconds);
}

// How many waits the credit allows one after the other, all with this outcome. At most a thousand.
int allowed_in_a_row(semaphore_credit& credit, bool taken, bool late) {
    int allowed = 0;
    while (allowed != 1'000 && credit.allows()) {
        credit.learn(taken, late);
        ++allowed;
    }
    return allowed;
}

TEST(SemaphoreCredit, BeginsWithABriefTurn) {
    semaphore_credit credit;
    EXPECT_FALSE(credit.allows());
    use_permit(credit, semaphore_credit::brief + 1);
    EXPECT_FALSE(credit.allows());
    use_permit(credit, semaphore_credit::brief);
    EXPECT_TRUE(credit.allows());
}

TEST(SemaphoreCredit, DoesNotBeginIfAnotherThreadReleases) {
    semaphore_credit credit;
    credit.begin_use(mine, beginning);
    credit.end_use(of_another, beginning + 100);
    EXPECT_FALSE(credit.allows());
}

TEST(SemaphoreCredit, LastsWhileYieldsSucceedSoon) {
    semaphore_credit credit;
    use_permit(credit);
    EXPECT_EQ(allowed_in_a_row(credit, true, false), 1'000);
}

TEST(SemaphoreCredit, IsUsedUpByYieldsThatAreLateOrInVain) {
    struct outcome {
        bool taken;
        bool late;
        int allowed;
    };
    for (const auto& each : {outcome{true, true, 200}, {false, false, 100}, {false, true, 50}}) {
        semaphore_credit credit;
        use_permit(credit);
        EXPECT_EQ(allowed_in_a_row(credit, each.taken, each.late), each.allowed);
    }
}

TEST(SemaphoreCredit, PassesOverSomeTurnsBeforeItBeginsAgain) {
    semaphore_credit credit;
    for (int round = 0; round != 3; ++round) {
        use_permit(credit);
        EXPECT_EQ(allowed_in_a_row(credit, false, true), 50);
        for (int passed_over = 0; passed_over != 32; ++passed_over) {
            use_permit(credit);
            EXPECT_FALSE(credit.allows());
        }
    }
}

}  // namespace
