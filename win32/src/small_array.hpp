// SPDX-License-Identifier: Apache-2.0
// An array whose elements are added one by one. It is on the stack for up to `Near` elements, and on the heap for more.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tocsin::win32 {

template <class T, std::size_t Near>
class small_array {
public:
    explicit small_array(std::size_t max) : at_(reinterpret_cast<T*>(near_)) {
        if (max <= Near) return;
        far_ = std::make_unique_for_overwrite<std::byte[]>(max * sizeof(T));
        at_ = reinterpret_cast<T*>(far_.get());
    }
    small_array(const small_array&) = delete;
    small_array& operator=(const small_array&) = delete;
    ~small_array() { std::destroy_n(at_, size_); }

    template <class... From>
    T& add(From&&... from) noexcept {
        return *std::construct_at(at_ + size_++, std::forward<From>(from)...);
    }
    std::size_t size() const noexcept { return size_; }
    std::span<T> all() noexcept { return {at_, size_}; }

private:
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

    std::unique_ptr<std::byte[]> far_;
    T* at_;
    std::size_t size_ = 0;
    alignas(T) std::byte near_[Near * sizeof(T)];
};

}  // namespace tocsin::win32
