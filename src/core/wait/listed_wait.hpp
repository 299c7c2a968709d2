// SPDX-License-Identifier: Apache-2.0
// Lists the waits for custom sources, so that diagnose.hpp can show them: these waits have no node in the lot. Why it
// is correct: listed_wait.cpp.
#pragma once

#include "core/sync/fork.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/wait_origin.hpp"

#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::core {

class waiter;

// What one wait enters into a list for one custom source. The wait calls enter() once it is enlisted, and leave()
// before it returns.
class listed_wait : public detail::list_links<listed_wait> {
public:
    void enter(const source& what, const waiter& who, const wait_origin& from) noexcept;
    // Does nothing if the wait has not entered.
    void leave() noexcept;

    // For looks under the list's lock.
    const source_label& label() const noexcept { return label_; }
    // Whether the wait has not ended yet.
    bool is_open() const noexcept;
    const wait_origin& origin() const noexcept { return origin_; }

private:
    friend struct debugger_layout;

    const waiter* who_ = nullptr;  // null: not in a list
    source_label label_;
    wait_origin origin_;
    process_stamp process_;
};

struct alignas(64) list_of_waits {
    futex_lock lock;
    detail::intrusive_list<listed_wait> waits;
};
inline constexpr unsigned lists_of_waits_bits = 6;
extern list_of_waits lists_of_waits[std::size_t{1} << lists_of_waits_bits];

// Calls `look(wait, context)` for each wait in the lists, under the lock of its list.
void for_each_listed(void (*look)(const listed_wait&, void*), void* context) noexcept;

}  // namespace tocsin::core
