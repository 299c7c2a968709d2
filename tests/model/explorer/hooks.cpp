// SPDX-License-Identifier: Apache-2.0
#include "hooks.hpp"

#include "atomic.hpp"
#include "engine.hpp"
#include "futex.hpp"

namespace tocsin::model {

namespace detail {

namespace {
engine& e() { return *engine::active; }
}  // namespace

word load(const void* address, unsigned size, std::memory_order order, source where) {
    return e().load({address, size}, order, where);
}

void store(void* address, unsigned size, word value, std::memory_order order, source where) {
    e().store({address, size}, value, order, where);
}

word read_modify_write(void* address, unsigned size, rmw kind, word operand, std::memory_order order,
                       source where) {
    static_assert(static_cast<int>(rmw::bit_xor) == static_cast<int>(rmw_kind::bit_xor));
    return e().rmw({address, size}, static_cast<rmw_kind>(kind), operand, order, where);
}

bool compare_exchange(void* address, unsigned size, word& expected, word desired, std::memory_order success,
                      std::memory_order failure, bool weak, source where) {
    return e().compare_exchange({address, size}, expected, desired, success, failure, weak, where);
}

void fence(std::memory_order order, source where) { e().fence(order, where); }
void relax(source where) { e().relax(where); }

void constructed(const void* a, unsigned size, word value) { e().constructed({a, size}, value); }
void destroyed(const void* a, unsigned size) { e().destroyed({a, size}); }
void forgotten(const void* a, unsigned size) { e().forgotten({a, size}); }
void plain_constructed(const void* a, unsigned size) { e().cell_constructed({a, size}); }
void plain_destroyed(const void* a, unsigned size) { e().cell_destroyed({a, size}); }
void plain_read(const void* a, unsigned size, source where) { e().cell_read({a, size}, where); }
void plain_written(const void* a, unsigned size, source where) { e().cell_written({a, size}, where); }

}  // namespace detail

bool rmw_is_full_fence() noexcept {
    return engine::active != nullptr && engine::active->how().rmw_is_full_fence;
}

std::uint64_t load_erased(const void* address, unsigned size, std::memory_order order,
                          std::source_location where) {
    if (!detail::exploring) return memory::peek({address, size});
    return engine::active->load({address, size}, order, where);
}

void name(const void* object, std::string_view text) {
    if (detail::exploring) engine::active->name(object, text);
}

int this_thread() noexcept { return engine::active ? engine::active->running() : 0; }

futex_result futex_wait(const atomic<std::uint32_t>* at, std::uint32_t expected, bool may_time_out,
                        std::source_location where) {
    if (!detail::exploring) return futex_result::differed;
    bool slept = false;
    switch (engine::active->futex_wait({at, sizeof *at}, expected, may_time_out, slept, where)) {
        case wake_reason::timed_out: return futex_result::timed_out;
        case wake_reason::spurious: return futex_result::spurious;
        case wake_reason::woken: break;
    }
    return slept ? futex_result::woken : futex_result::differed;
}

futex_result futex_wait_any(const std::vector<futex_place>& words, bool may_time_out,
                            std::source_location where) {
    if (!detail::exploring) return futex_result::differed;
    std::vector<sleeping_place> places;
    for (const futex_place& each : words) places.push_back({{each.atomic, each.size}, each.expected});
    switch (engine::active->futex_wait_any(places, may_time_out, where)) {
        case wake_reason::timed_out: return futex_result::timed_out;
        case wake_reason::spurious: return futex_result::spurious;
        case wake_reason::woken: break;
    }
    return futex_result::woken;
}

void futex_wake_any_and_show(const void* at, unsigned size, std::source_location where) {
    if (detail::exploring) engine::active->futex_wake_any_and_show({at, size}, where);
}

void futex_wake_op(const atomic<std::uint32_t>* at, std::uint32_t bits, std::source_location where) {
    if (detail::exploring) engine::active->futex_wake_op({at, sizeof *at}, bits, where);
}

unsigned futex_wake(const void* address, unsigned count, std::source_location where) {
    return detail::exploring ? engine::active->futex_wake(address, count, where) : 0;
}

}  // namespace tocsin::model
