// SPDX-License-Identifier: Apache-2.0
// Why it is correct: slots.hpp, token_queue.cpp and shared_lock.cpp.
#include "core/shared/slots.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <cstdio>
#include <system_error>

namespace tocsin::core {
namespace {

[[noreturn]] void refuse(const shared_parts& object, std::errc error, const char* what) {
    char message[200];
    std::snprintf(message, sizeof message, "tocsin: %s at %p: %s", shared_kind_name(object.kind),
                  static_cast<const void*>(&object.header), what);
    detail::throw_or_die(std::system_error(std::make_error_code(error), message));
}

constexpr std::uint32_t stamp_of(shared_kind which, std::uint32_t slots) noexcept {
    return slots << 16 | detail::shared_version << 8 | static_cast<std::uint32_t>(which);
}

}  // namespace

const char* shared_kind_name(shared_kind which) noexcept {
    switch (which) {
        case shared_kind::manual_reset_event: return "shared_manual_reset_event";
        case shared_kind::auto_reset_event: return "shared_auto_reset_event";
        case shared_kind::semaphore: return "shared_semaphore";
        case shared_kind::lock: return "shared_lock";
        case shared_kind::none: break;
    }
    return "object of an unknown kind";
}

void shared_refuse_no_room(const shared_parts& object) {
    char what[100];
    std::snprintf(what, sizeof what, "all of its %u slots are taken by threads that wait for it or hold it",
                  object.slot_count);
    refuse(object, std::errc::no_buffer_space, what);
}

void shared_refuse_endless(const shared_parts& object) {
    refuse(object, std::errc::state_not_recoverable, "its memory is being changed without end");
}

void shared_refuse_system() {
    detail::throw_or_die(std::system_error(
        std::make_error_code(std::errc::function_not_supported),
        "tocsin: threads of several processes can wait for each other on Linux only (docs/platforms.md)"));
}

void shared_check_stamp(const shared_parts& object) {
    if (!platform::shared_futex::is_available()) shared_refuse_system();
    const std::uint32_t wanted = stamp_of(object.kind, object.slot_count);
    // no order: nothing but the stamp itself is read because of it
    std::uint32_t seen = object.header.stamp.load(std::memory_order_relaxed);
    if (seen == wanted) return;
    seen = 0;
    // no order: as above
    if (object.header.stamp.compare_exchange_strong(seen, wanted, std::memory_order_relaxed) ||
        seen == wanted)
        return;
    const auto found = static_cast<shared_kind>(seen & 0xFF);
    char what[120];
    std::snprintf(
        what, sizeof what, "the memory holds a %s, version %u, with %u slots; not version %u with %u",
        shared_kind_name(found), seen >> 8 & 0xFF, seen >> 16, detail::shared_version, object.slot_count);
    refuse(object, std::errc::invalid_argument, what);
}

namespace {

// Makes those who sleep on the object, or are about to, look at the owners again (slots-1).
void wake_to_watch(const shared_parts& object) noexcept {
    detail::full_fence();  // [watch] with the fence of whoever is about to sleep
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& slot = object.slots[i];
        std::uint64_t seen = slot.word.load(std::memory_order_relaxed);  // no order: the fence is enough
        if (state_of(seen) != slot_state::waiting) continue;
        const std::uint32_t number = lower(seen);
        if ((number & armed) != 0) {  // else it has changed already, to a mark that the kernel may need
            const std::uint32_t next = armed | ((number + 1) & (armed - 1));
            // no order: the fence releases the claim. If another changes the word, its thread looks again, too.
            (void)slot.word.compare_exchange_strong(seen, joined(upper(seen), next),
                                                    std::memory_order_relaxed);
        }
        platform::shared_futex::wake_all(slot.word);
    }
}

}  // namespace

shared_slot* shared_claim_slot(const shared_parts& object, std::uint32_t& index) noexcept {
    const std::uint32_t mark = platform::shared_futex::thread_mark();
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& slot = object.slots[i];
        std::uint32_t seen = slot.owner.load(std::memory_order_relaxed);  // no order: the exchange decides
        if (!is_ownerless(seen)) continue;
        platform::shared_futex::cover(slot.owner);
        // [slot-free], [slot-dead] acquires what the last owner, or the kernel in its stead, left here
        if (slot.owner.compare_exchange_strong(seen, mark, std::memory_order_acq_rel,
                                               std::memory_order_relaxed)) {
            index = i;
            if (seen != free_again) wake_to_watch(object);
            return &slot;
        }
    }
    platform::shared_futex::uncover();
    return nullptr;
}

claimed_slot::claimed_slot(const shared_parts& object) : slot_(shared_claim_slot(object, index_)) {
    if (slot_ == nullptr) shared_refuse_no_room(object);
}

}  // namespace tocsin::core
