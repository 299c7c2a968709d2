// SPDX-License-Identifier: Apache-2.0
// The permits of a semaphore of Windows, which counts to 2,147,483,647. A semaphore of tocsin counts to 1,073,741,823
// (`MaxNear`), and does all the waiting. Permits that do not fit into it are counted in `beyond_`.
//
// Invariants
//   permits-1  While permits are beyond, many are near. Whoever takes a permit then moves some of those beyond
//       (took_one()). So the near semaphore is never empty while permits are beyond, unless hundreds of millions of
//       threads take permits at the same time. No wait is queued then, and nothing else has to look beyond.
//   permits-2  `beyond_` changes under the lock. If the maximum is greater than MaxNear, permits are added under the
//       lock, too, with one exception: a release of one permit that leaves at most `half` near, which is MaxNear / 2.
//       An addition under the lock leaves room for that exception: its permits fit beside those that it found and
//       beside `half`. So no other thread's addition makes the near semaphore too full for it.
//   permits-3  Near and beyond together do not exceed the maximum. The exception does not look beyond, so at most
//       `max - half` permits may be beyond. That is so: a release that puts permits beyond has either filled the near
//       semaphore, or has added MaxNear - half >= half near, and all of them together fit into the maximum. It adds
//       those near by an exchange that fails if other threads' permits have taken their place meanwhile. (give_back()
//       may exceed the maximum.)
//
// Memory order: none but that of the near semaphore and of the lock. A take acquires the release that filled the near
// semaphore. The store to `beyond_` came before that release, so took_one() sees it or a later one.
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), win32/tests/semaphore_test.cpp,
// win32/tests/unit/inside_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/source.hpp>
#include <tocsin/word_lock.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace tocsin::win32 {

template <std::int32_t MaxNear>
class basic_permits {
public:
    basic_permits(std::int32_t initial, std::int32_t maximum)
        : near(std::min(initial, MaxNear)),
          max_(maximum),
          max_unlocked_(maximum > MaxNear ? half : maximum),
          beyond_(initial - std::min(initial, MaxNear)) {}

    // Adds permits, unless there would be too many. Then returns false. Stores in `before`, unless it is null, how many
    // there were. If waits for all are queued and other threads release at the same time, a call that fails may have
    // given some of its permits to such waits (detail::semaphore_try_release()).
    bool release(std::int32_t count, std::int32_t* before) noexcept {
        if (!is_far()) return add(count, max_unlocked_, before);
        // permits-2: the exception
        if (count == 1 && before == nullptr && add(1, half, nullptr)) return true;
        return release_far(count, before);
    }
    bool is_full() noexcept {
        // no order: a guess; the release decides
        return count_near() >= max_ - beyond_.load(std::memory_order_relaxed);
    }
    // Adds the permit of a wait that has taken it and does not use it. Other threads may have released permits
    // meanwhile, so there may be more than the maximum afterwards, as when a wait for several permits of tocsin gives
    // up (include/tocsin/semaphore.hpp). A permit is never lost.
    void give_back() noexcept {
        if (!is_far()) return (void)add(1, MaxNear, nullptr);
        const std::lock_guard held(lock_);
        // no order: under the lock
        if (room_near() == 0) return (void)beyond_.fetch_add(1, std::memory_order_relaxed);
        (void)add(1, MaxNear, nullptr);
    }
    // After a permit has been taken.
    void took_one() noexcept {
        // no order: see Memory order
        if (beyond_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            move_near();
    }

    counting_semaphore<> near;

private:
    static constexpr std::int32_t half = MaxNear / 2;

    bool is_far() const noexcept { return max_unlocked_ != max_; }
    detail::semaphore_word& word() noexcept {
        return *static_cast<detail::semaphore_word*>(source(near).object());
    }
    std::int32_t count_near() noexcept {
        // no order: a count, which the caller passes on or checks again
        return static_cast<std::int32_t>(
            detail::semaphore_state::free_permits(word().load(std::memory_order_relaxed)));
    }
    // How many permits fit near, whatever other threads do (permits-2). For a thread that holds the lock.
    std::int32_t room_near() noexcept { return MaxNear - std::max(count_near(), half); }

    bool add(std::int32_t count, std::int32_t limit, std::int32_t* before) noexcept {
        std::uint32_t seen = 0;
        if (!detail::semaphore_try_release(word(), static_cast<std::uint32_t>(count),
                                           static_cast<std::uint32_t>(limit), seen))
            return false;
        if (before != nullptr) *before = static_cast<std::int32_t>(seen);
        return true;
    }

    [[gnu::noinline]] bool release_far(std::int32_t count, std::int32_t* before) noexcept {
        const std::lock_guard held(lock_);
        const std::int32_t beyond = beyond_.load(std::memory_order_relaxed);  // no order: under the lock
        std::int32_t seen = count_near();
        if (seen > max_ - beyond || count > max_ - beyond - seen) return false;
        const std::int32_t here = std::min(count, MaxNear - std::max(seen, half));
        const std::int32_t there = beyond + (count - here);
        beyond_.store(there, std::memory_order_relaxed);  // no order: the same
        if (here != 0 && !add(here, std::min(MaxNear, max_ - there), &seen)) {
            beyond_.store(beyond, std::memory_order_relaxed);  // no order: the same
            return false;
        }
        if (before != nullptr) *before = seen + beyond;
        return true;
    }
    [[gnu::noinline]] void move_near() noexcept {
        const std::lock_guard held(lock_);
        const std::int32_t beyond = beyond_.load(std::memory_order_relaxed);  // no order: under the lock
        const std::int32_t moved = std::min(beyond, room_near());
        if (moved == 0) return;
        beyond_.store(beyond - moved, std::memory_order_relaxed);  // no order: the same
        (void)add(moved, MaxNear, nullptr);
    }

    const std::int32_t max_;
    const std::int32_t max_unlocked_;
    detail::atomic<std::int32_t> beyond_;
    word_lock<> lock_;
};

}  // namespace tocsin::win32
