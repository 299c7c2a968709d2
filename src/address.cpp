// Address waits: the lot, keyed by the address, and a look at the value under the bucket's lock.
//
// State: none but the user's word and the lot.
//
// Invariants
//   address-1  A node is queued only if the value was the expected one after prepare_wait(), under the lock.
//   address-2  A wake never reads the word. It reaches exactly the nodes of its address and kind. It touches no other
//       waiter: not on a neighbouring address, not on another kind of the same address, not one that merely shares the
//       bucket.
//
// No lost wake-up: the waker changes the value, makes a full fence, and looks at the filter. The waiter sets the
// filter, makes a full fence (prepare_wait), and looks at the value. One of them sees the other: the waiter returns
// `differed`, or the waker takes the lock and finds the node (lot.cpp).
//
// A change that wakes (store(), exchange(), fetch_add() ...) makes no fence. Its change and its look are both
// sequentially consistent, which is enough. Such operations, and such fences, have one order, and in it the change
// comes before the look. If the look misses the filter bit, it comes before the waiter's fence in that order: what is
// written before the fence is visible to each such load that follows the fence. So the change comes before that fence,
// too, and every load after the fence sees the change, or a later one. The waiter's look at the value does.
// ([atomics.order] 4.1 to 4.4.) With the orders relaxed at either step this is false, and the explorer shows the
// wake-up that is lost.
// What compilers make of it (GCC 12, Clang 19):
//   x86            A locked instruction or xchg, and a plain load: the locked instruction is a full fence.
//   64-bit ARM     A release (ldaddal, stlxr, stlr) and an acquire (ldar). The processor keeps these two in order.
//   32-bit ARM, RISC-V, POWER    The compiler puts its full fence (dmb, fence rw,rw, sync) between the two.
//
// Memory order
//   [user]        the look at the value acquires, for a caller that returns because it differs and then reads what the
//                 user released with the store that changed it.
//   [wake-check]  the two fences; for a change that wakes, the change and its look at the filter against the fence of
//                 prepare_wait(). What the waker did before is visible to the waiter it releases by [release]
//                 (waiter.cpp), and to a thread that sees the changed value by the order that the user gave that store.
//                 A change that wakes releases.
//
// Checked by: tests/model/address_model_test.cpp, tests/unit/address_test.cpp, tests/stress/.
#include "core/lot/lot.hpp"
#include "core/wait/spinner.hpp"
#include "platform/system/system.hpp"

#include <tocsin/address.hpp>
#include <tocsin/detail/refuse.hpp>

#include <cstdio>
#include <stdexcept>

namespace tocsin {
namespace {

core::wait_key key_of(const volatile void* address) noexcept {
    return {const_cast<const void*>(address), core::wait_kind::address};
}

// Out of line, so that it is not in the way of the wake that finds nobody.
#if defined(_MSC_VER)
__declspec(noinline)
#else
[[gnu::noinline]]
#endif
std::size_t wake(const volatile void* address, std::size_t count) noexcept {
    const core::wait_key key = key_of(address);
    std::size_t taken = 0;
    core::release_list freed;
    {
        core::locked_queue queue(key);
        freed = queue.take(count, taken);
    }
    freed.wake();
    return taken;
}

}  // namespace

namespace detail {

void throw_misaligned(const volatile void* address, unsigned size) {
    char message[128];
    std::snprintf(message, sizeof message,
                  "tocsin::wait_on_address: address %p is not aligned to the %u bytes of its object",
                  const_cast<const void*>(address), size);
    detail::throw_or_die(std::invalid_argument(message));
}

void changed_misaligned(const volatile void* address, unsigned size) noexcept {
    char message[128];
    std::snprintf(message, sizeof message,
                  "tocsin: object at %p changed, which is not aligned to its %u bytes\n",
                  const_cast<const void*>(address), size);
    platform::die(message);
}

void wake_after_change(const volatile void* address, std::size_t count) noexcept {
    if (core::may_be_waited_on(key_of(address))) (void)wake(address, count);
}

address_status address_wait_slow(const volatile void* address, unsigned size, std::uint64_t expected,
                                 const wait_options& options) noexcept {
    if (const core::claim ended = core::ended_before_wait(options); ended != core::claim::open)
        return core::status_from(ended, address_status::woken);
    const core::wait_key key = key_of(address);
    // [user] acquires; what it finds under the lock is ordered by the fence of prepare_wait(). [wake-check]
    const auto differs = [&]() noexcept { return load_erased(address, size) != expected; };
    core::spinner looking(key, options);
    if (looking.before_parking(differs)) return address_status::differed;

    core::waiter self;
    core::wait_node node(key, self, core::can_cancel(options));
    {
        core::locked_queue queue(key);
        queue.prepare_wait();
        if (differs()) return address_status::differed;
        queue.append(node);
    }
    const core::claim how = looking.spin_then_sleep(self);
    if (how != core::claim::signaled) core::locked_queue(key).remove(node);
    return core::status_from(how, address_status::woken);
}

}  // namespace detail

std::size_t wake_by_address_n(const volatile void* address, std::size_t count) noexcept {
    const bool maybe = core::may_be_waited_on(key_of(address), [] { detail::full_fence(); });  // [wake-check]
    return maybe ? wake(address, count) : 0;
}

std::size_t wake_by_address_one(const volatile void* address) noexcept {
    return wake_by_address_n(address, 1);
}

std::size_t wake_by_address_all(const volatile void* address) noexcept {
    return wake_by_address_n(address, static_cast<std::size_t>(-1));
}

}  // namespace tocsin
