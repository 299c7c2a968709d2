// SPDX-License-Identifier: Apache-2.0
// A reference to a user's executor. How it is used: src/core/async/executor_post.hpp.
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tocsin::detail {

// The executor of a wait, and whether the executor has been given what is to run (core/async/executor_post.hpp).
struct executor_reference {
    // `Post` calls the executor with what is to run.
    template <class Executor, class Post>
    void refer_to(Executor& executor, Post) noexcept {
        static_assert(std::is_empty_v<Post>);
        object = const_cast<std::remove_cv_t<Executor>*>(std::addressof(executor));
        post = [](void* to, void* who) noexcept {
            auto& called = *static_cast<Executor*>(to);
            if constexpr (std::same_as<std::invoke_result_t<Post&, Executor&, void*>, bool>) {
                return Post()(called, who);
            } else {
                Post()(called, who);
                return true;
            }
        };
    }

    void* object = nullptr;  // null: none
    bool (*post)(void* object, void* who) noexcept = nullptr;
    atomic<std::uint32_t> posted{0};
};

}  // namespace tocsin::detail
