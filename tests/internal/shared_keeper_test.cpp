// SPDX-License-Identifier: Apache-2.0
// A keeper of waits for shared tokens (src/shared_source.cpp) is killed after each n-th instruction of what it does
// with two waits, with another first instruction in each run. Then no token is lost that a survivor should have, and
// each slot can be used again. TOCSIN_EVERY_INSTRUCTION=1 in the environment makes it each instruction.
#include "core/shared/token_queue.hpp"
#include "sanitizer.hpp"
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include <sys/ptrace.h>

namespace {

using namespace shared_objects;
using tocsin::core::give_token;
using tocsin::core::keeper_wait;
using tocsin::core::sleep_list;
using event = placed<tocsin::shared_auto_reset_event>;

tocsin::core::shared_parts parts_of(const event& of) {
    auto& whole = *reinterpret_cast<tocsin::detail::shared_object<31>*>(of.bytes());
    return {whole.header, whole.slots, 31, tocsin::detail::shared_kind::auto_reset_event};
}

// How far the child is, in flag 0. Flag 1 says whether the wait has ended with a token.
enum progress : std::uint32_t { nothing, waits, given, ended, queued_again, received, all };

void keep_two_waits(const event& of) {
    const tocsin::core::shared_parts parts = parts_of(of);
    sleep_list words;
    keeper_wait first(parts);
    EXPECT_EQ(first.advance(words), keeper_wait::step::waiting);
    of.flag(0) = waits;
    give_token(parts, 1);
    of.flag(0) = given;
    of.flag(1) = first.end() ? 1 : 0;
    of.flag(0) = ended;
    keeper_wait second(parts);
    EXPECT_EQ(second.advance(words), keeper_wait::step::waiting);
    of.flag(0) = queued_again;
    give_token(parts, 1);
    EXPECT_EQ(second.advance(words), keeper_wait::step::taken);
    of.flag(0) = received;
    give_token(parts, 1);
    of.flag(0) = all;
}

// Lets a child make at most so many instructions, and kills it. Returns how many it has made before it was done; 0 if
// there is no tracing here.
std::size_t kill_after(std::size_t steps, const event& of) {
    const pid_t child = in_child([&] {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
        ::raise(SIGSTOP);
        keep_two_waits(of);
        for (;;) ::raise(SIGSTOP);
    });
    int status = 0;
    std::size_t made = 0;
    bool stopped = ::waitpid(child, &status, 0) == child && WIFSTOPPED(status);
    for (; stopped && made != steps && of.flag(0).load() != all; ++made) {
        stopped = ::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 &&
                  ::waitpid(child, &status, 0) == child && WIFSTOPPED(status);
    }
    ::kill(child, SIGKILL);
    while (::waitpid(child, &status, 0) == child && !WIFSIGNALED(status)) {
    }
    return stopped ? made : 0;
}

void check(const event& of, std::size_t steps) {
    const std::uint32_t is = of.flag(0).load();
    unsigned tokens = 0;
    while (tokens != 5 && of->try_wait()) ++tokens;
    EXPECT_LE(tokens, 1u) << "after instruction " << steps;
    EXPECT_TRUE((is != nothing && is != ended) || tokens == 0) << "after instruction " << steps;
    EXPECT_TRUE(is != all || tokens == 1);
    EXPECT_TRUE(is < ended || of.flag(1).load() == 1);
    // Nothing that the dead has left takes the next token, and every slot is free.
    of->set();
    EXPECT_TRUE(of->try_wait()) << "after instruction " << steps;
    EXPECT_FALSE(of->try_wait());
    for (unsigned i = 0; i != tocsin::shared_auto_reset_event::slots; ++i)
        EXPECT_TRUE(tocsin::core::is_ownerless(of.owner_of(i))) << "after instruction " << steps;
}

// A number tells threads of one pid namespace apart, and a slot that the keeper frees may be claimed by another.
TEST(SharedKeeper, AKeeperWatchesEachSlotAlsoThoseWithItsOwnNumber) {
    event of;
    keeper_wait one(parts_of(of)), other(parts_of(of));
    sleep_list made;
    ASSERT_EQ(one.advance(made), keeper_wait::step::waiting);
    ASSERT_EQ(other.advance(made), keeper_wait::step::waiting);
    sleep_list words;
    EXPECT_EQ(one.advance(words), keeper_wait::step::waiting);
    EXPECT_EQ(words.count(), 2u);  // its own word, and the owner of the other slot
    EXPECT_FALSE(other.end());
    EXPECT_EQ(words.sleep(std::chrono::minutes(1)),
              tocsin::platform::shared_sleep::woken);  // the owner has changed
    sleep_list again;
    EXPECT_EQ(one.advance(again), keeper_wait::step::waiting);
    EXPECT_EQ(again.count(), 2u);  // also of a free slot that has been owned
    EXPECT_FALSE(one.end());
}

// Five waits, each of which watches 30 owners, have more words than a thread can sleep on.
TEST(SharedKeeper, AKeeperWithTooManyWordsSleepsOnThoseOfAllItsWaits) {
    std::array<event, 5> of;
    std::array<std::optional<keeper_wait>, of.size()> waits;
    const auto list_all = [&](sleep_list& words) {
        for (auto& each : waits) EXPECT_EQ(each->advance(words), keeper_wait::step::waiting);
    };
    for (std::size_t i = 0; i != of.size(); ++i) {
        std::array<std::optional<keeper_wait>, tocsin::shared_auto_reset_event::slots> all;
        sleep_list made;
        for (auto& each : all)
            EXPECT_EQ(each.emplace(parts_of(of[i])).advance(made), keeper_wait::step::waiting);
        for (auto& each : all) EXPECT_FALSE(each->end());
        waits[i].emplace(parts_of(of[i]));
    }
    for (std::size_t i = 0; i != of.size(); ++i) {
        sleep_list words;
        list_all(words);
        EXPECT_TRUE(words.lacks_some());
        EXPECT_EQ(words.count(), tocsin::platform::max_watched);
        of[i]->set();
        EXPECT_EQ(words.sleep(std::chrono::seconds(10)), tocsin::platform::shared_sleep::woken) << i;
        sleep_list after;
        EXPECT_EQ(waits[i]->advance(after), keeper_wait::step::taken);
    }
    for (auto& each : waits) EXPECT_FALSE(each->end());
}

TEST(SharedKeeper, AKeeperThatDiesLosesNoTokenAndNoSlot) {
    if (support::thread_sanitizer || support::address_sanitizer)
        GTEST_SKIP() << "a sanitizer's own instructions are too many";
    {
        // The first wait of a thread allocates. The children inherit what this thread has.
        event another;
        sleep_list words;
        keeper_wait wait(parts_of(another));
        ASSERT_EQ(wait.advance(words), keeper_wait::step::waiting);
        EXPECT_FALSE(wait.end());
    }
    std::size_t length = 0;
    {
        event whole;
        length = kill_after(static_cast<std::size_t>(-1), whole);
        if (length == 0) GTEST_SKIP() << "no tracing here (an emulator, or a sandbox)";
        check(whole, length);
    }
    // Each kill comes after up to some thousand single steps.
    const std::size_t kills = std::getenv("TOCSIN_EVERY_INSTRUCTION") != nullptr ? length : 6;
    const std::size_t stride = std::max<std::size_t>(1, length / kills);
    for (std::size_t steps = 1 + static_cast<std::size_t>(::getpid()) % stride; steps < length;
         steps += stride) {
        event one;
        ASSERT_NE(kill_after(steps, one), 0u);
        check(one, steps);
        if (HasFailure()) break;
    }
}

}  // namespace
