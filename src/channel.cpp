// SPDX-License-Identifier: Apache-2.0
// A channel is a ring of slots with a lock at each of its two ends, and two lists of transfers that wait. The waits
// themselves are those of wait.cpp and pending.cpp: a transfer is a custom source (source.hpp), and a call that blocks
// is a wait for this one source. This file and detail/channel_base.hpp have the parts that do not depend on the type of
// the items; the others are in channel.hpp.
//
// State
//   Each side, the sending one and the receiving one, has a lock. Under its own lock a side keeps:
//     `passed`     how many items have ever passed its end of the ring. The other side reads it, too.
//     `next_slot`  the slot of the next item.
//     `limit`      how far `passed` may go, by the side's last look at the other side's `passed`.
//   Under both locks, the sending one taken first:
//     `waiting`    of each side: the transfers that are enlisted, oldest first.
//     `marks_`     whether the channel is closed, and for each side whether `waiting` has a transfer.
//   The channel holds sending_.passed - receiving_.passed items.
//
// A transfer is enlisted with one or more entries of one wait (wait_entry in source.hpp). To claim the transfer means
// to claim this wait for it. The claim fails if something else has claimed the wait: another source, a deadline or a
// stop. An enlisted transfer that can't be claimed any more is dead. Its wait is about to delist it.
//
// Invariants
//   channel-1  A transfer happens in one step, in one of two ways. In the first, the transfer's own thread does it, in
//       put() or take(). Then the transfer is not enlisted, or its wait has just been claimed for the transfer. In the
//       second, another thread does it, under both locks: this thread claims the transfer, takes it off the list and
//       moves the item. A wait is claimed once, so at most one of its transfers happens, and at most once.
//   channel-2  Whenever both locks are free, the following is true of all transfers that are not dead:
//       - A receiver is enlisted only while the ring is empty, and a sender only while it is full.
//       - A sender and a receiver of different waits are not both enlisted.
//       - On a closed channel nothing is enlisted.
//       So items leave in the order in which they came, whether they wait in the ring or with their senders.
//   channel-3  An item is in exactly one place: with its sender, in a slot, or with its receiver. Moves do not throw.
//       If a receive empties a slot while a sender is enlisted, the sender's item takes the slot under the same locks.
//   channel-4  A call that has passed an item on, or closed the channel, touches the channel only under the lock, or
//       the locks, that it then holds. It frees a lock by the lock's address alone (bit_lock-2). The destructor takes
//       both locks first, so the destruction comes after such a call. Once another thread has claimed a thread's
//       transfer, the transfer's own thread does not touch the channel: its delist() sees `claimed_`. (A wait that
//       names the channel more than once may still be enlisting then. The header makes an exception for such a wait.) A
//       thread whose transfer has happened without being enlisted does not touch the channel afterwards, either.
//   channel-5  While no transfer is enlisted and the channel is open, `marks_` is zero, and each side needs its own
//       lock only. It fills or empties slots between `passed` and `limit`, which the other side does not touch.
//
// No lost wake-up: a thread that has taken both locks checks whether the transfer can happen. If it can't, the thread
// enlists the transfer before it frees the locks. Every put() and take() reads `marks_` under one of these locks. All
// critical sections of one lock have one order. If the enlisting comes first, the thread in put() or take() sees the
// mark, takes both locks and finds the transfer. If the put() or take() comes first, the check finds that the transfer
// can happen. Then enlist() returns false, and the wait tries the transfer. may_send() and may_receive() guess without
// a lock. After a wrong guess, a wait that may sleep calls enlist(), which checks again. A wait that may not sleep ends
// without the transfer: there was a moment during the call at which the transfer could not happen ([look]).
//
// Two waits that meet (rendezvous): when a transfer is to be enlisted, a transfer of another wait may already be
// enlisted on the other side. Both waits must then be claimed. (This is so whether a wait is for several sources or,
// like that of a send() or a receive(), for one.)
//   1. The wait that is enlisting takes `meetings`, a lock of which the process has only one, and enlist() returns
//      false. (All copies of the library that share the lot's table have the same lock, because it is in that table.)
//      Then this wait claims itself for the transfer (enlist_custom() in core/wait/multi_wait.cpp). From here on,
//      nobody else can claim it.
//   2. The wait tries the transfer. Under the channel's locks, this claims the other wait. Then `meetings` is freed,
//      before the other wait is woken. The reason: the other wait's coroutine, or its executor, may come to a meeting
//      of its own.
//   3. If no other wait could be claimed, nothing has happened. The wait delists everything, looks at all its sources,
//      and enlists again, with a new waiter. Step 1 claimed the old waiter, for which nobody waits.
// If the claim of step 1 fails, something else has claimed the wait. The wait then delists this transfer at once, which
// frees `meetings`, and does nothing in the name of this transfer.
// Two waits may find each other at two channels. `meetings` is what makes them agree. Without this lock, both could
// claim themselves first, and each would then find the other dead, again and again. With the lock, the first of them
// finds the second unclaimed. So step 2 fails only if the other wait has ended, or is about to delist after a try of
// its own. `meetings` is always taken first, before the locks of a channel, and no thread waits for a source while it
// holds `meetings`. A wait that both sends and receives at one rendezvous must not meet itself: has_other_waits() does
// not count its own transfers, and a wait that has claimed itself can't be claimed once more in step 2.
//
// Memory order
//   [slot]    A side releases its slots by the store of `passed`, and the other side acquires them when it renews its
//             `limit`. So an item is visible to the thread that takes it out, and a slot is empty when it is filled.
//   [lock-release]  The locks (bit_lock.cpp) order everything else. What a claiming thread did to a transfer is
//             passed on to the transfer's thread by [release] in waiter.cpp.
//   [look]    The first load of may_send() or of may_receive() acquires, so the second load sees a count that is not
//             older. So if may_send() returns false, the ring was full at one moment: when the second count had that
//             value. If may_receive() returns false, the ring was empty at such a moment.
//   [closed]  close() releases by its store to `marks_`, and is_closed() acquires. No store follows that one, because
//             nothing is enlisted on a closed channel.
//
// Checked by: tests/model/channel_model_test.cpp (P20 of docs/proofs.md), tests/unit/channel_test.cpp,
// channel_source_test.cpp, tests/stress/channel_stress_test.cpp, tests/copies/twenty (`meetings`).
#include "core/lot/lot.hpp"
#include "core/sync/happens_before.hpp"
#include "platform/system/system.hpp"

#include <tocsin/channel.hpp>
#include <tocsin/wait.hpp>

#include <cstdio>
#include <mutex>
#include <span>
#include <utility>

namespace tocsin::detail {
namespace {

// Tells ThreadSanitizer what both locks order while the library has them, and that the library looks at both ends of
// the ring: a later call in the program may rely on that look.
template <class Side>
class both_told {
public:
    both_told(const Side& one, const Side& other) noexcept : one_(one), other_(other) {
        core::order::after(&one_.lock);
        core::order::after(&other_.lock);
    }
    both_told(const both_told&) = delete;
    both_told& operator=(const both_told&) = delete;
    ~both_told() {
        core::order::after(&one_.passed);
        core::order::after(&other_.passed);
        core::order::before(&one_.lock);
        core::order::before(&other_.lock);
    }

private:
    const Side& one_;
    const Side& other_;
};

bit_lock<std::uint32_t> meetings() noexcept { return bit_lock<std::uint32_t>(core::the_lot->meetings, 0); }

}  // namespace

// Takes dead transfers off the list on the way. When their waits call delist() later, it finds them off the list, and
// leaves the list alone.
channel_transfer* channel_base::claim_oldest(side& of, wake_list& freed) noexcept {
    channel_transfer* claimed = nullptr;
    while (claimed == nullptr) {
        channel_transfer* const oldest = of.waiting.take_first();
        if (oldest == nullptr) break;
        oldest->listed_ = false;
        wake_list one = oldest->entries_.notify_one();
        if (one.empty()) continue;
        freed.append(std::move(one));
        oldest->claimed_ = true;
        claimed = oldest;
    }
    if (of.waiting.empty()) set_mark(of.mark, false);
    return claimed;
}

bool channel_base::close() noexcept {
    wake_list freed;
    {
        const both_locked held(*this);
        const both_told told(sending_, receiving_);
        if ((marks() & closed) != 0) return false;
        for (side* const each : {&sending_, &receiving_}) {
            while (channel_transfer* const one = claim(*each, freed)) one->status_ = channel_status::closed;
        }
        marks_.store(closed, std::memory_order_release);  // [closed]
    }
    freed.wake();
    return true;
}

bool channel_base::has_other_waits(const side& in, const wait_entry& than) noexcept {
    const auto* each = in.waiting.first();
    while (each != nullptr && each->first_->is_of_same_wait(than)) each = in.waiting.next(*each);
    return each != nullptr;
}

bool channel_base::enlist(side& mine, channel_transfer& transfer, wait_entry& entry) noexcept {
    {
        const both_locked held(*this);
        const both_told told(sending_, receiving_);
        const bool is_sender = &mine == &sending_;
        if ((marks() & closed) != 0 || (is_sender ? has_room() : has_items())) return false;
        if (!has_other_waits(is_sender ? receiving_ : sending_, entry)) {
            append(transfer, entry, mine);
            return true;
        }
    }
    transfer.begin_meeting();
    return false;
}

void channel_base::append(channel_transfer& transfer, wait_entry& entry, side& to) noexcept {
    if (!transfer.listed_) {
        transfer.listed_ = true;
        transfer.claimed_ = false;
        transfer.first_ = &entry;
        to.waiting.append(transfer);
        set_mark(to.mark, true);
    } else if (!transfer.first_->is_of_same_wait(entry)) {
        die("one transfer in two waits at the same time");
    }
    transfer.entries_.append(entry);
    transfer.enlisted_ = true;
}

void channel_base::delist(side& mine, channel_transfer& transfer, wait_entry& entry) noexcept {
    if (transfer.meets_) transfer.end_meeting();
    if (!transfer.enlisted_) return;
    if (transfer.claimed_) {  // channel-4
        transfer.entries_.remove(entry);
        transfer.enlisted_ = !transfer.entries_.empty();
        return;
    }
    const both_locked held(*this);
    const both_told told(sending_, receiving_);
    transfer.entries_.remove(entry);
    if (!transfer.entries_.empty()) return;
    transfer.enlisted_ = false;
    if (!transfer.listed_) return;
    transfer.listed_ = false;
    mine.waiting.remove(transfer);
    if (mine.waiting.empty()) set_mark(mine.mark, false);
}

void channel_transfer::begin_meeting() noexcept {
    meetings().lock();
    meets_ = true;
}

void channel_transfer::end_meeting() noexcept {
    meets_ = false;
    meetings().unlock();
}

channel_status channel_base::wait(const source& transfer, const channel_status& status,
                                  const limits& how) noexcept {
    switch (wait_any_slow(std::span(&transfer, 1), how).status) {
        case wait_status::timed_out: return channel_status::timed_out;
        case wait_status::stopped: return channel_status::stopped;
        case wait_status::signaled: break;
    }
    return status;
}

void channel_base::end_calls() noexcept {
    const both_locked held(*this);
    const both_told told(sending_, receiving_);
#if TOCSIN_CHECKED
    if ((marks() & (senders_wait | receivers_wait)) != 0) core::refuse_destruction("channel", this);
#endif
}

void channel_base::die(const char* reason) const noexcept {
    char message[128];
    std::snprintf(message, sizeof message, "tocsin: channel at %p: %s\n", static_cast<const void*>(this),
                  reason);
    platform::die(message);
}

}  // namespace tocsin::detail
