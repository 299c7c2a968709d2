// SPDX-License-Identifier: Apache-2.0
// Computes a number from the layout of objects in memory. Copies of the library in one process share objects only if
// the copies have the same number (platform/shared_table/shared_table.hpp). The compiler computes the number from sizes
// and offsets, so nobody has to remember to change it.
//
//     constexpr layout_hash hash = layout_hash("node").add<node>({TOCSIN_MEMBER(node, next), ...});
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace tocsin::platform {

struct member_layout {
    std::size_t offset;
    std::size_t size;
    std::size_t alignment;
};

class layout_hash {
public:
    explicit constexpr layout_hash(std::string_view what) noexcept {
        for (const char each : what) add(static_cast<unsigned char>(each));
    }

    constexpr layout_hash& add(std::uint64_t number) noexcept {
        value_ = (value_ ^ number) * 0x100'0000'01b3;  // FNV-1a, with numbers in place of bytes
        value_ ^= value_ >> 29;
        return *this;
    }

    // Takes all members of `Type`; a base class counts as a member. If a member is left out, this does not compile,
    // unless the member is no larger than the padding at its place.
    template <class Type>
    constexpr layout_hash& add(std::initializer_list<member_layout> members) {
        for (const member_layout& each : members) add(each.offset).add(each.size);
        std::size_t end = 0;
        for (std::size_t i = 0; i != members.size(); ++i) {
            const member_layout* next = nullptr;
            for (const member_layout& each : members) {
                if (each.offset >= end && (next == nullptr || each.offset < next->offset)) next = &each;
            }
            if (next == nullptr || next->offset - end >= next->alignment) a_member_has_been_left_out();
            end = next->offset + next->size;
        }
        if (sizeof(Type) - end >= alignof(Type)) a_member_has_been_left_out();
        return add(sizeof(Type)).add(alignof(Type));
    }

    constexpr std::uint64_t value() const noexcept { return value_; }

private:
    [[noreturn]] static void a_member_has_been_left_out();  // not constexpr: stops the compiler

    std::uint64_t value_ = 0xcbf2'9ce4'8422'2325;
};

#define TOCSIN_MEMBER(type, name)                                                         \
    ::tocsin::platform::member_layout {                                                   \
        offsetof(type, name), sizeof(decltype(type::name)), alignof(decltype(type::name)) \
    }

}  // namespace tocsin::platform
