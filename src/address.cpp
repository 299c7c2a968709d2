// SPDX-License-Identifier: Apache-2.0
// An address wait parks in the lot under the key of its address. It looks at the value under the bucket's lock.
//
// State: only the user's word and the lot.
//
// Invariants
//   address-1  A waiter queues its node only if it has found the expected value after prepare_wait(), under the lock.
//   address-2  A wake never reads the word. It reaches only nodes of its own address and kind: no waiter on a
//       neighbouring address, no waiter of another kind on the same address, and no waiter that merely shares the
//       bucket.
//
// No lost wake-up: by the argument in core/lot/enrol.hpp. Its signal is the change of the value, then a full fence and
// a look at the filter. Its mark is prepare_wait(): the filter bit, then a full fence and the look at the value. At
// least one of the two sees what the other wrote. If the waiter sees the new value, it returns `differed`. If the waker
// sees the filter bit, it takes the lock and finds the node.
//
// A change that wakes (store(), exchange(), fetch_add() ...) makes no fence. The change and its look at the filter are
// both sequentially consistent. All sequentially consistent operations and fences have one order, and in this order the
// change comes before its look. If that look comes after the waiter's fence, it sees the filter bit, which the waiter
// wrote before the fence. Otherwise both the change and its look come before the waiter's fence. The waiter reads the
// value only after that fence, so it then sees the change or a later one ([atomics.order] 4.1 to 4.4). If the change or
// its look had a weaker memory order, a wake-up could be lost, as the model explorer (docs/proofs.md) shows.
// What Clang 19 makes of the change and its look:
//   x86            A locked instruction or xchg, and a plain load: the locked instruction is a full fence.
//   64-bit ARM     A release (ldaddal, stlxr, stlr) and an acquire (ldar). The processor keeps these two in order.
//   32-bit ARM, RISC-V, POWER    The compiler puts its full fence (dmb, fence rw,rw, sync) between the two.
//
// Memory order
//   [user]        The look at the value acquires. So a caller that returns because the value differs can read what
//                 another thread wrote before it stored the new value, if the user made that store a release. Every
//                 change that wakes is a release.
//   [wake-check]  At least one of the waiter and the waker sees what the other wrote, because each of them makes a full
//                 fence. (For a change that wakes, the waiter's fence and the two steps of the change have the same
//                 effect.) What the waker did before its wake becomes visible in other ways. The waiter that it
//                 releases sees it by [release] (waiter.cpp). A thread that sees the changed value sees it by the
//                 memory order that the user gave to the store of that value.
//
// Checked by: tests/model/address_model_test.cpp, tests/unit/address_test.cpp,
// change_and_wake_test.cpp, tests/stress/.
#include "core/lot/lot.hpp"
#include "core/sync/probe.hpp"
#include "core/wait/park.hpp"
#include "platform/system/system.hpp"

#include <tocsin/address.hpp>
#include <tocsin/detail/exceptions.hpp>

#include <cstdio>
#include <stdexcept>

namespace tocsin {
namespace {

core::wait_key key_of(const volatile void* address) noexcept {
    return {const_cast<const void*>(address), core::wait_kind::address};
}

// Out of line, so that a wake that finds nobody stays short.
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
    TOCSIN_PROBE(notify, address, core::wait_kind::address, count, taken);
    freed.wake();
    return taken;
}

// A thread's wait until somebody wakes it, unless the value is not the expected one.
struct value_wait : core::own_wait {
    const volatile void* const address;
    const unsigned size;
    const std::uint64_t expected;
    const detail::wait_options& options;

    value_wait(const volatile void* at, unsigned bytes, std::uint64_t value,
               const detail::wait_options& with) noexcept
        : address(at), size(bytes), expected(value), options(with) {}

    core::wait_key learned() const noexcept { return key_of(address); }
    // [user] The look acquires. [wake-check] Under the lock, the fence of prepare_wait() comes before it.
    bool differs() const noexcept { return detail::load_erased(address, size) != expected; }
    bool look(core::spinner& looking) const noexcept {
        return looking.before_parking([&]() noexcept { return differs(); });
    }
    core::wait_node node_for(core::waiter& self) const noexcept {
        return {key_of(address), self, core::can_cancel(options)};
    }
    bool take_or_enrol(core::wait_queue& queue, core::wait_node& node,
                       const core::wait_origin& origin) const noexcept {
        queue.prepare_wait();
        if (differs()) return true;
        queue.append(node, origin);
        return false;
    }
};

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
                                 const deadline* until, const stop_token* stop, spin_policy spin) noexcept {
    const deadline never = deadline::never();
    const wait_options options{until != nullptr ? *until : never, stop, spin};
    value_wait wait(address, size, expected, options);
    const core::claim how = core::park(wait, options);
    return how == core::claim::open ? address_status::differed
                                    : core::status_from(how, address_status::woken);
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
