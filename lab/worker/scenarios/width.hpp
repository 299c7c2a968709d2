// SPDX-License-Identifier: Apache-2.0
// From the parameter `bytes` to a type, and to the contestant's words and locks of that size.
#pragma once

#include "../kinds.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

namespace lab {

// f(std::type_identity<Word>) for the unsigned word of that many bytes.
template <class F>
decltype(auto) with_width(const parameters& given, F&& f) {
    switch (given.number("bytes")) {
        case 1: return f(std::type_identity<std::uint8_t>{});
        case 2: return f(std::type_identity<std::uint16_t>{});
        case 4: return f(std::type_identity<std::uint32_t>{});
        default: return f(std::type_identity<std::uint64_t>{});
    }
}

// f(std::type_identity<X>) with the contestant's X in that word, if it has one; returns whether it has.

template <class C, class Word, class F>
bool offer_address_word(F& f) {
    if constexpr (has_address_word<C, Word>) f(std::type_identity<typename C::template address_word<Word>>{});
    return has_address_word<C, Word>;
}

template <class C, class Word, class F>
bool offer_word_lock(F& f) {
    if constexpr (has_word_lock<C, Word>) f(std::type_identity<typename C::template word_lock<Word>>{});
    return has_word_lock<C, Word>;
}

template <class C, class Word, class F>
bool offer_bit_lock(F& f) {
    if constexpr (has_bit_lock<C, Word>) f(std::type_identity<typename C::template bit_lock<Word>>{});
    return has_bit_lock<C, Word>;
}

template <class C, class F>
bool offer_own_lock(F& f) {
    if constexpr (has_own_lock<C>) f(std::type_identity<typename C::own_lock>{});
    return has_own_lock<C>;
}

// The words of the size that the case asks for.
struct address_words {
    template <class C, class F>
    static void with(const parameters& given, F f) {
        with_width(given, [&]<class Word>(std::type_identity<Word>) { offer_address_word<C, Word>(f); });
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        const bool has_one =
            with_width(given, []<class Word>(std::type_identity<Word>) { return has_address_word<C, Word>; });
        return has_one ? std::string() : std::string(C::info.no_address_wait);
    }

    template <class Word>
    static void check(context& run) {
        check_address_word<Word>(run);
    }
};

}  // namespace lab
