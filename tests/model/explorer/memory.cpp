// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace tocsin::model {

namespace {

// Room for 18 stores put in between two others.
constexpr timestamp stamp_step = timestamp{1} << 18;
static_assert(std::numeric_limits<timestamp>::max() / stamp_step > step_limit + 1,
              "each step may store once");

}  // namespace

// --- address_map ---

void address_map::put(const void* address, int number) {
    if (2 * used_ >= slots_.size()) grow();
    slot& s = slots_[probe(address)];
    if (s.round != round_) ++used_;
    s = {address, number, round_};
}

void address_map::grow() {
    std::vector<slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const slot& s : old)
        if (s.round == round_) slots_[probe(s.address)] = s;
}

void address_map::clear() {
    ++round_;
    used_ = 0;
}

// --- objects ---

void thread_memory::clear() {
    current.clear();
    unacquired.clear();
    released.clear();
    stale.clear();
}

std::size_t location::index_of(timestamp t) const noexcept {
    std::size_t i = count;
    while (i > 0 && history[i - 1].at > t) --i;
    return i - 1;
}

word memory::peek(object o) noexcept {
    word value = 0;
    std::memcpy(&value, o.address, o.size);
    return value;
}

void memory::poke(object o, word value) noexcept {
    std::memcpy(const_cast<void*>(o.address), &value, o.size);
}

void memory::start(const options& how) {
    options_ = how;
    location_count_ = cell_count_ = 0;
    location_at_.clear();
    cell_at_.clear();
    sc_.clear();
}

void memory::restore() {
    for (std::size_t i = 0; i < location_count_; ++i) {
        const location& x = *locations_[i];
        if (x.found && x.alive) poke(x.where, x.initial);
    }
    for (std::size_t i = 0; i < cell_count_; ++i) {
        const cell& c = cells_[i];
        if (c.found && c.alive && c.initial)
            std::memcpy(const_cast<void*>(c.where.address), c.initial.get(), c.where.size);
    }
}

void memory::construct(object o, word value, const thread_memory* by) {
    if (location_count_ == locations_.size()) locations_.push_back(std::make_unique<location>());
    const int number = static_cast<int>(location_count_++);
    location& x = at(number);
    x.where = o;
    x.alive = true;
    x.found = by == nullptr;
    x.initial = value;
    x.born_by = by ? by->id : -1;
    x.born_at = by ? by->epoch() : 0;
    x.touched.fill(0);
    x.first_use = {};
    x.count = 1;
    if (x.history.empty()) x.history.resize(4);
    message& m = x.history.front();
    m.value = value;
    m.at = stamp_step;
    m.writer = x.born_by;
    m.step = 0;
    m.writer_step_clock = 0;
    m.claimed = false;
    m.carried.clear();
    location_at_.put(o.address, number);
}

int memory::meet(object o, const std::source_location& where) {
    construct(o, peek(o), nullptr);
    const int number = static_cast<int>(location_count_ - 1);
    at(number).first_use = where;
    return number;
}

const char* memory::destroy(const void* address, const thread_memory& by) {
    const int number = location_at_.find(address);
    if (number < 0) return nullptr;
    location& x = at(number);
    if (!x.alive) return "destroyed twice";
    x.alive = false;
    return by.current.includes(x.touched)
               ? nullptr
               : "destroyed although nothing orders the last access of another thread before it";
}

void memory::forget(const void* address) {
    if (const int number = location_at_.find(address); number >= 0) at(number).alive = false;
}

const char* memory::touch(int number, object o, const thread_memory& by) {
    location& x = at(number);
    if (!x.alive) return "used after its destruction";
    if (x.where.size != o.size) return "accessed with two sizes";
    if (x.born_by >= 0 && !by.current.includes(x.born_by, x.born_at))
        return "used although nothing orders its construction in another thread before it "
               "(storage used again?)";
    x.touched[static_cast<std::size_t>(by.id)] = by.epoch();
    return nullptr;
}

// --- plain objects ---

void memory::construct_cell(object o, const thread_memory* by) {
    if (cell_count_ == cells_.size()) cells_.emplace_back();
    const int number = static_cast<int>(cell_count_++);
    cell& c = cells_[static_cast<std::size_t>(number)];
    c.where = o;
    c.alive = true;
    c.found = by == nullptr;
    c.writer = by ? by->id : -1;
    c.written_at = by ? by->epoch() : 0;
    c.readers = 0;
    c.initial.reset();
    cell_at_.put(o.address, number);
}

cell& memory::meet_cell(object o) {
    construct_cell(o, nullptr);
    cell& c = cells_[cell_count_ - 1];
    c.initial = std::make_unique<unsigned char[]>(o.size);
    std::memcpy(c.initial.get(), o.address, o.size);
    return c;
}

const char* memory::read_cell(object o, const thread_memory& by) {
    cell& c = locate_cell(o);
    if (!c.alive) return "read after its destruction";
    if (c.writer >= 0 && c.writer != by.id && !by.current.includes(c.writer, c.written_at))
        return "data race: read while nothing orders the last write before it";
    c.readers |= mask_of(by.id);
    c.read_at[static_cast<std::size_t>(by.id)] = by.epoch();
    return nullptr;
}

const char* memory::write_cell(object o, const thread_memory& by, bool destroys) {
    cell& c = locate_cell(o);
    if (!c.alive) return destroys ? "destroyed twice" : "written after its destruction";
    if (c.writer >= 0 && c.writer != by.id && !by.current.includes(c.writer, c.written_at))
        return "data race: written while nothing orders the last write before it";
    for (thread_mask m = c.readers & ~mask_of(by.id); m != 0; m &= m - 1) {
        const int reader = std::countr_zero(m);
        if (!by.current.includes(reader, c.read_at[static_cast<std::size_t>(reader)]))
            return "data race: written while nothing orders a read by another thread before it";
    }
    c.readers = 0;
    c.writer = by.id;
    c.written_at = by.epoch();
    c.alive = !destroys;
    return nullptr;
}

// --- accesses ---

timestamp memory::floor(const thread_memory& by, int number, std::memory_order o) const noexcept {
    const auto n = static_cast<std::size_t>(number);
    const timestamp seen = by.current.at(n);
    return is_sc(o) ? std::max(seen, sc_.at(n)) : seen;
}

word memory::read(thread_memory& by, int number, int from, std::memory_order o) {
    const location& x = at(number);
    const auto n = static_cast<std::size_t>(number);
    const message& m = x.history[static_cast<std::size_t>(from)];
    if (static_cast<std::size_t>(from) + 1 < x.count) {
        if (by.stale.size() <= n) by.stale.resize(n + 1);
        stale_mark& mark = by.stale[n];
        mark.times = mark.message == m.at ? mark.times + 1 : 1;
        mark.message = m.at;
    }
    by.current.raise(n, m.at);
    (acquires(o) ? by.current : by.unacquired).join(m.carried);
    if (is_sc(o)) sc_.raise(n, m.at);
    return m.value;
}

std::optional<timestamp> memory::stamp_behind(const location& x, std::size_t index) const noexcept {
    const timestamp low = x.history[index].at;
    if (index + 1 == x.count) return low + stamp_step;
    const timestamp high = x.history[index + 1].at;
    if (high - low < 2) return std::nullopt;
    return low + (high - low) / 2;
}

int memory::write(thread_memory& by, int number, int behind, word value, std::memory_order o, unsigned step,
                  std::uint32_t step_clock, bool rmw) {
    location& x = at(number);
    const auto n = static_cast<std::size_t>(number);
    const auto position = static_cast<std::size_t>(behind) + 1;
    const timestamp t = *stamp_behind(x, position - 1);
    by.current.raise(n, t);
    if (is_sc(o)) sc_.raise(n, t);

    if (x.history.size() == x.count) x.history.emplace_back();
    message& m = x.history[x.count];
    m.value = value;
    m.at = t;
    m.writer = by.id;
    m.step = step;
    m.writer_step_clock = step_clock;
    m.claimed = false;
    // A copy into the spare message keeps its buffer.
    m.carried = releases(o) ? by.current : by.released;
    m.carried.raise(n, t);
    if (rmw) {
        m.carried.join(x.history[position - 1].carried);
        x.history[position - 1].claimed = true;
    }
    const auto first = x.history.begin();
    std::rotate(first + static_cast<std::ptrdiff_t>(position), first + static_cast<std::ptrdiff_t>(x.count),
                first + static_cast<std::ptrdiff_t>(x.count) + 1);
    ++x.count;
    poke(x.where, x.newest().value);
    return static_cast<int>(position);
}

void memory::fence(thread_memory& by, std::memory_order o) {
    if (acquires(o)) by.current.join(by.unacquired);
    if (is_sc(o)) {
        by.current.join_seen(sc_);
        sc_.join_seen(by.current);
    }
    if (releases(o)) by.released = by.current;
}

}  // namespace tocsin::model
