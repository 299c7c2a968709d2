// SPDX-License-Identifier: Apache-2.0
// Waits on addresses of every width. In C, the width is a number; in C++, it is a type.
#include "boundary.hpp"

#include <tocsin/address.hpp>

using namespace tocsin::c;

namespace tocsin::c {
namespace {

tocsin_status status_of(tocsin::address_status how) noexcept {
    switch (how) {
        case tocsin::address_status::woken: return TOCSIN_OK;
        case tocsin::address_status::differed: return TOCSIN_DIFFERED;
        case tocsin::address_status::timed_out: return TOCSIN_TIMED_OUT;
        case tocsin::address_status::stopped: break;
    }
    return TOCSIN_STOPPED;
}

// Calls `use` with the address, as a pointer to an unsigned integer of `size` bytes.
template <class Use>
tocsin_status with_word(const volatile void* address, size_t size, Use&& use,
                        const char* call = __builtin_FUNCTION()) noexcept {
    const bool is_width = size == 1 || size == 2 || size == 4 || size == 8;
    if (address == nullptr || !is_width || (reinterpret_cast<std::uintptr_t>(address) & (size - 1)) != 0)
        [[unlikely]]
        return refuse(call, "the object is null, not aligned to its size, or not of 1, 2, 4 or 8 bytes");
    void* const plain = const_cast<void*>(address);
    return guarded(call, [&]() -> tocsin_status {
        switch (size) {
            case 1: return use(static_cast<std::uint8_t*>(plain));
            case 2: return use(static_cast<std::uint16_t*>(plain));
            case 4: return use(static_cast<std::uint32_t*>(plain));
            default: return use(static_cast<std::uint64_t*>(plain));
        }
    });
}

template <class Word>
Word change(Word* word, tocsin_change_kind kind, Word operand, tocsin::wake_count wake) noexcept {
    switch (kind) {
        case TOCSIN_CHANGE_ADD:
            return tocsin::fetch_add(word, static_cast<std::make_signed_t<Word>>(operand), wake);
        case TOCSIN_CHANGE_SUBTRACT:
            return tocsin::fetch_sub(word, static_cast<std::make_signed_t<Word>>(operand), wake);
        case TOCSIN_CHANGE_AND: return tocsin::fetch_and(word, operand, wake);
        case TOCSIN_CHANGE_OR: return tocsin::fetch_or(word, operand, wake);
        case TOCSIN_CHANGE_XOR: return tocsin::fetch_xor(word, operand, wake);
        case TOCSIN_CHANGE_STORE: break;
    }
    return tocsin::exchange(word, operand, wake);
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_wait_on_address(const volatile void* address, size_t size, uint64_t expected,
                                     const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with_word(address, size, [=]<class Word>(const Word* word) {
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token* const stop = until.stop.get();
        const auto value = static_cast<Word>(expected);
        return status_of(stop == nullptr
                             ? tocsin::wait_on_address(word, value, until.until, until.spin)
                             : tocsin::wait_on_address(word, value, until.until, *stop, until.spin));
    });
}

tocsin_status tocsin_wait_until_changed(const volatile void* address, size_t size, uint64_t old,
                                        const tocsin_limits* how, uint64_t* value) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with_word(address, size, [=]<class Word>(const Word* word) {
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token none;
        const tocsin::stop_token* const stop = until.stop.get();
        const auto result = tocsin::wait_until_accepted(
            word, [=](Word seen) { return seen != static_cast<Word>(old); }, until.until,
            stop == nullptr ? none : *stop, until.spin);
        if (value != nullptr) *value = result.value;
        return tocsin::c::status_of(result.status);
    });
}

size_t tocsin_wake_by_address_one(const volatile void* address) {
    return tocsin::wake_by_address_one(address);
}
size_t tocsin_wake_by_address_n(const volatile void* address, size_t count) {
    return tocsin::wake_by_address_n(address, count);
}
size_t tocsin_wake_by_address_all(const volatile void* address) {
    return tocsin::wake_by_address_all(address);
}

tocsin_status tocsin_change_and_wake(volatile void* address, size_t size, tocsin_change_kind kind,
                                     uint64_t operand, size_t wake, uint64_t* old) {
    if (kind < TOCSIN_CHANGE_STORE || kind > TOCSIN_CHANGE_XOR) return refuse(__func__, "no such change");
    return with_word(address, size, [=]<class Word>(Word* word) {
        const Word before = change(word, kind, static_cast<Word>(operand), tocsin::wake_n(wake));
        if (old != nullptr) *old = before;
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_compare_exchange_and_wake(volatile void* address, size_t size, uint64_t* expected,
                                               uint64_t desired, size_t wake) {
    if (object_at<uint64_t>(expected) == nullptr) return refuse(__func__, "`expected` is null or misaligned");
    return with_word(address, size, [=]<class Word>(Word* word) {
        auto seen = static_cast<Word>(*expected);
        if (tocsin::compare_exchange(word, seen, static_cast<Word>(desired), tocsin::wake_n(wake)))
            return TOCSIN_OK;
        *expected = seen;
        return TOCSIN_DIFFERED;
    });
}

}  // extern "C"
