// SPDX-License-Identifier: Apache-2.0
// Group commit written by hand: one algorithm, with several ways to wake the members of a group.
#pragma once

#include "../contestant.hpp"
#include "../measure/futex.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace lab {

// The first thread to join a group leads it. It waits for its turn, which comes when the previous flush has ended. Then
// it closes the group, flushes, gives the turn to the next group's leader and wakes its own members. So no thread is
// woken for a group that isn't its own, and the next flush begins while this group wakes up.
//
// A Channel is what the members of a group wait on: finish(group) ends wait() for that group and all before it.
template <class Channel>
class hand_made_committer {
public:
    explicit hand_made_committer(std::function<void(std::size_t)> flush) : flush_(std::move(flush)) {
        turn_of(first).finish(first);
    }

    void submit() {
        const auto [group, leads] = join();
        if (!leads) {
            end_of(group).wait(group);
            return;
        }
        turn_of(group).wait(group);
        flush_(close());
        turn_of(group + 1).finish(group + 1);
        end_of(group).finish(group);
    }

private:
    std::pair<std::uint32_t, bool> join() {
        const std::scoped_lock held(mutex_);
        return {gathering_, members_++ == 0};
    }
    std::size_t close() {
        const std::scoped_lock held(mutex_);
        ++gathering_;
        return std::exchange(members_, 0);
    }

    // Members of earlier groups may still be on their way out while later ones gather.
    static constexpr std::uint32_t ring = 8, first = 1;
    Channel& turn_of(std::uint32_t group) noexcept { return turns_[group % ring]; }
    Channel& end_of(std::uint32_t group) noexcept { return ends_[group % ring]; }

    std::function<void(std::size_t)> flush_;
    std::mutex mutex_;
    std::uint32_t gathering_ = first;
    std::size_t members_ = 0;
    std::array<Channel, ring> turns_, ends_;
};

// Group numbers wrap around.
constexpr bool is_before(std::uint32_t one, std::uint32_t other) noexcept {
    return static_cast<std::int32_t>(one - other) < 0;
}

class cond_broadcast_channel {
public:
    void finish(std::uint32_t group) {
        {
            const std::scoped_lock held(mutex_);
            if (is_before(finished_, group)) finished_ = group;
        }
        changed_.notify_all();
    }
    void wait(std::uint32_t group) {
        std::unique_lock held(mutex_);
        changed_.wait(held, [&] { return !is_before(finished_, group); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint32_t finished_ = 0;
};

class cond_each_channel {
public:
    void finish(std::uint32_t group) {
        sleeper* next;
        {
            const std::scoped_lock held(mutex_);
            if (is_before(finished_, group)) finished_ = group;
            next = std::exchange(sleepers_, nullptr);
        }
        while (next != nullptr) {
            sleeper& one = *next;
            next = one.next;
            const std::scoped_lock held(one.mutex);  // the sleeper can't leave while this is held
            one.woken = true;
            one.changed.notify_one();
        }
    }
    void wait(std::uint32_t group) {
        sleeper self;
        for (;;) {
            {
                const std::scoped_lock held(mutex_);
                if (!is_before(finished_, group)) return;
                self.woken = false;
                self.next = std::exchange(sleepers_, &self);
            }
            std::unique_lock held(self.mutex);
            self.changed.wait(held, [&] { return self.woken; });
        }
    }

private:
    struct sleeper {
        std::mutex mutex;
        std::condition_variable changed;
        bool woken = false;
        sleeper* next = nullptr;
    };

    std::mutex mutex_;
    sleeper* sleepers_ = nullptr;
    std::uint32_t finished_ = 0;
};

// Sets the word to `group`, unless it holds that or a later one already. Returns whether it did.
inline bool advance(std::atomic<std::uint32_t>& finished, std::uint32_t group) noexcept {
    std::uint32_t seen = finished.load();
    while (is_before(seen, group)) {
        if (finished.compare_exchange_weak(seen, group)) return true;
    }
    return false;
}

class futex_channel {
public:
    void finish(std::uint32_t group) noexcept {
        if (advance(finished_, group)) futex_wake(finished_);
    }
    void wait(std::uint32_t group) const noexcept {
        for (std::uint32_t seen; is_before(seen = finished_.load(), group);) futex_wait(finished_, seen);
    }

private:
    futex_word finished_{0};
};

class atomic_channel {
public:
    void finish(std::uint32_t group) noexcept {
        if (advance(finished_, group)) finished_.notify_all();
    }
    void wait(std::uint32_t group) const noexcept {
        for (std::uint32_t seen; is_before(seen = finished_.load(), group);) finished_.wait(seen);
    }

private:
    std::atomic<std::uint32_t> finished_{0};
};

// The `info` of all of them.
constexpr contestant_info hand_made(std::string_view name, std::string_view label, std::string_view about) {
    constexpr std::string_view only = "is only a group commit";
    return {.name = name,
            .label = label,
            .role = role::peer,
            .about = about,
            .limits = "no deadline, no stop, no exceptions",
            .no_manual_event = only,
            .no_auto_event = only,
            .no_lock = only,
            .no_address_wait = only};
}

struct group_one_cond {
    static constexpr contestant_info info =
        hand_made("group_one_cond", "one cond broadcast",
                  "group commit by hand: a group waits on one condition variable, which is broadcast");
    using committer = hand_made_committer<cond_broadcast_channel>;
};
struct group_cond_each {
    static constexpr contestant_info info =
        hand_made("group_cond_each", "a cond a thread",
                  "group commit by hand: each member has a condition variable, signalled one by one");
    using committer = hand_made_committer<cond_each_channel>;
};
struct group_futex {
    static constexpr contestant_info info =
        hand_made("group_futex", "futex broadcast", "group commit by hand: a group waits on one futex");
    using committer = hand_made_committer<futex_channel>;
};
struct group_atomic {
    static constexpr contestant_info info =
        hand_made("group_atomic", "atomic notify_all",
                  "group commit by hand: a group waits on one std::atomic; notify_all");
    using committer = hand_made_committer<atomic_channel>;
};

}  // namespace lab
