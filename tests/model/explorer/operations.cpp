// SPDX-License-Identifier: Apache-2.0
// What the running thread does to atomics, and how the table shows it.
#include "engine.hpp"

#include <algorithm>

namespace tocsin::model {

namespace {

const char* text_of(std::memory_order o) noexcept {
    switch (o) {
        case std::memory_order_relaxed: return "relaxed";
        case std::memory_order_consume: return "consume";
        case std::memory_order_acquire: return "acquire";
        case std::memory_order_release: return "release";
        case std::memory_order_acq_rel: return "acq_rel";
        case std::memory_order_seq_cst: return "seq_cst";
    }
    return "";
}

const char* text_of(rmw_kind k) noexcept {
    switch (k) {
        case rmw_kind::exchange: return "exchange";
        case rmw_kind::add: return "fetch_add";
        case rmw_kind::subtract: return "fetch_sub";
        case rmw_kind::bit_or: return "fetch_or";
        case rmw_kind::bit_and: return "fetch_and";
        case rmw_kind::bit_xor: return "fetch_xor";
    }
    return "";
}

word cut_to(word v, unsigned size) noexcept {
    return size >= sizeof v ? v : v & ((word{1} << (8 * size)) - 1);
}

word compute(rmw_kind k, word old, word operand, unsigned size) noexcept {
    switch (k) {
        case rmw_kind::exchange: return operand;
        case rmw_kind::add: return cut_to(old + operand, size);
        case rmw_kind::subtract: return cut_to(old - operand, size);
        case rmw_kind::bit_or: return old | operand;
        case rmw_kind::bit_and: return old & operand;
        case rmw_kind::bit_xor: return old ^ operand;
    }
    return old;
}

std::string change(word from, word to) { return tracer::value(from) + " -> " + tracer::value(to); }

}  // namespace

// --- helpers ---

void engine::tell(std::string_view operation, const void* address, std::string value, std::string_view order,
                  std::string remark, source where) {
    trace_.add({steps_, me().name, std::string(operation), address ? trace_.name_of(address) : std::string(),
                std::move(value), std::string(order), std::move(remark), tracer::file_and_line(where)});
}

std::string engine::origin(const location& x, int from) const {
    const auto i = static_cast<std::size_t>(from);
    const message& m = x.history[i];
    std::string text = m.step == 0 ? "initial value" : "from step " + std::to_string(m.step);
    if (i + 1 < x.count) {
        text = "STALE: " + text + ", newest " + tracer::value(x.newest().value);
        if (x.newest().step != 0) text += " from step " + std::to_string(x.newest().step);
    }
    return text;
}

void engine::fail(const void* address, std::string_view what, source where) {
    std::string text = trace_.name_of(address) + ' ' + std::string(what) + ", by " + me().name;
    if (const std::string p = tracer::file_and_line(where); !p.empty()) text += " at " + p;
    if (trace_.on) tell("FAILS", address, "", "", std::string(what), where);
    fail(std::move(text));
}

int engine::enter(object o, footprint& f, const char* doing, source where) {
    f.location = memory_.locate(o, where);
    // Storage may have been recycled while others ran.
    if (announce(f, doing)) f.location = memory_.locate(o, where);
    if (const char* wrong = memory_.touch(f.location, o, me().memory); wrong != nullptr)
        fail(o.address, wrong, where);
    return f.location;
}

unsigned engine::pick_key(choice what) {
    const unsigned taken = chooser_->value(keys_, what);
    decisions_.push_back(keys_[taken]);
    return taken;
}

unsigned engine::pick(unsigned count, choice what) {
    if (count <= 1) return 0;
    keys_.clear();
    for (unsigned i = 0; i < count; ++i) keys_.push_back(i);
    return pick_key(what);
}

// A message's key is its distance from the newest one. It is recorded even if the search leaves no choice,
// because a replay does not know what the search left out.
int engine::pick_message(const location& x, const std::vector<int>& among, choice what) {
    if (x.count == 1) return 0;
    keys_.clear();
    for (int i : among) keys_.push_back(static_cast<unsigned>(x.count) - 1 - static_cast<unsigned>(i));
    return among[pick_key(what)];
}

std::memory_order engine::strengthened(std::memory_order o, bool reads, bool writes) const noexcept {
    if (!options_.total_store_order || is_sc(o)) return o;
    if (reads && writes) return std::memory_order_acq_rel;
    return reads ? std::memory_order_acquire : std::memory_order_release;
}

// Steps that take a position in the order of all sequentially consistent steps depend on more than their own location.
// They may choose whatever the memory allows.
bool engine::follows(bool everything, std::uint32_t behind, const message& m) const {
    return everything || chooser_->follows(running_, behind, m.writer, m.writer_step_clock);
}

const std::vector<int>& engine::positions(int x, std::memory_order order, bool fence) {
    return memory_.placeable(me().memory, x, order,
                             [this, any = fence || is_sc(order)](std::uint32_t k, const message& m) {
                                 return follows(any, k, m);
                             });
}

const std::vector<int>& engine::readable(int x, std::memory_order order) {
    return memory_.readable(
        me().memory, x, order,
        [this, any = is_sc(order)](std::uint32_t k, const message& m) { return follows(any, k, m); });
}

int engine::write(int x, int behind, word value, std::memory_order order, bool rmw) {
    return memory_.write(me().memory, x, behind, value, order, steps_, chooser_->step_number(), rmw);
}

// --- atomics ---

word engine::load(object o, std::memory_order order, source where) {
    order = strengthened(order, true, false);
    footprint f{.sc = is_sc(order)};
    const int x = enter(o, f, "load", where);
    const int taken = pick_message(memory_.at(x), readable(x, order), choice::message);
    executed(f);
    const word value = memory_.read(me().memory, x, taken, order);
    if (trace_.on)
        tell("load", o.address, tracer::value(value), text_of(order), origin(memory_.at(x), taken), where);
    end_of_step();
    return value;
}

void engine::store(object o, word value, std::memory_order order, source where) {
    order = strengthened(order, false, true);
    const bool full = options_.rmw_is_full_fence && is_sc(order);  // xchg
    footprint f{.writes = true, .sc = is_sc(order), .fence = full};
    const int x = enter(o, f, "store", where);
    full_fence_if(full);
    const int taken = pick_message(memory_.at(x), positions(x, order, full), choice::position);
    executed(f);
    const int placed = write(x, taken, value, order, false);
    full_fence_if(full);
    if (trace_.on) {
        const location& l = memory_.at(x);
        const auto next = static_cast<std::size_t>(placed) + 1;
        tell("store", o.address, tracer::value(value), text_of(order),
             next < l.count ? "PLACED before step " + std::to_string(l.history[next].step) : "", where);
    }
    end_of_step();
}

word engine::rmw(object o, rmw_kind kind, word operand, std::memory_order order, source where) {
    order = strengthened(order, true, true);
    const bool full = options_.rmw_is_full_fence;
    footprint f{.writes = true, .sc = is_sc(order), .fence = full};
    const int x = enter(o, f, text_of(kind), where);
    full_fence_if(full);
    const int taken = pick_message(memory_.at(x), positions(x, order, full), choice::position);
    executed(f);
    const std::string remark = trace_.on ? origin(memory_.at(x), taken) : std::string();
    const word old = memory_.read(me().memory, x, taken, order);
    const word value = compute(kind, old, operand, o.size);
    write(x, taken, value, order, true);
    full_fence_if(full);
    if (trace_.on) tell(text_of(kind), o.address, change(old, value), text_of(order), remark, where);
    end_of_step();
    return old;
}

// What a compare-exchange may do, newest message first. It may fail with any message that it may read and whose value
// is not the expected one, and succeed with one that it may directly follow.
void engine::outcomes(int x, word expected, std::memory_order success, std::memory_order failure, bool weak,
                      unsigned size) {
    outcomes_.clear();
    const location& l = memory_.at(x);
    const auto matches = [&](int i) {
        return cut_to(l.history[static_cast<std::size_t>(i)].value, size) == expected;
    };
    for (int i : positions(x, success, options_.rmw_is_full_fence))
        if (matches(i)) outcomes_.push_back({i, true});
    if (weak && me().weak_left > 0 && !outcomes_.empty())
        outcomes_.push_back({outcomes_.front().from, false});
    const int newest = static_cast<int>(l.count) - 1;
    if (options_.rmw_is_full_fence) {
        if (!matches(newest)) outcomes_.push_back({newest, false});
    } else {
        for (int i : readable(x, failure))
            if (!matches(i)) outcomes_.push_back({i, false});
    }
    std::sort(outcomes_.begin(), outcomes_.end(), [](const outcome& a, const outcome& b) {
        return a.from != b.from ? a.from > b.from : a.succeeds > b.succeeds;
    });
}

unsigned engine::pick_outcome(int x) {
    const auto newest = static_cast<unsigned>(memory_.at(x).count) - 1;
    if (newest == 0 && outcomes_.size() == 1) return 0;
    keys_.clear();
    for (const outcome& o : outcomes_)
        keys_.push_back(2 * (newest - static_cast<unsigned>(o.from)) + (o.succeeds ? 0 : 1));
    return pick_key(choice::message);
}

bool engine::compare_exchange(object o, word& expected, word desired, std::memory_order success,
                              std::memory_order failure, bool weak, source where) {
    success = strengthened(success, true, true);
    failure = strengthened(failure, true, false);
    const bool full = options_.rmw_is_full_fence;
    footprint f{.writes = true, .sc = is_sc(success) || is_sc(failure), .fence = full};
    const int x = enter(o, f, "compare_exchange", where);
    full_fence_if(full);
    outcomes(x, expected, success, failure, weak, o.size);
    const outcome taken = outcomes_[pick_outcome(x)];
    f.writes = taken.succeeds || (!options_.total_store_order && (f.sc || f.fence));
    executed(f);
    const std::memory_order order = taken.succeeds ? success : failure;
    const std::string remark = trace_.on ? origin(memory_.at(x), taken.from) : std::string();
    const word old = memory_.read(me().memory, x, taken.from, order);
    const bool spurious = !taken.succeeds && old == expected;
    if (taken.succeeds) {
        write(x, taken.from, desired, order, true);
    } else if (spurious) {
        --me().weak_left;
    }
    full_fence_if(full);
    if (trace_.on)
        tell("compare_exchange", o.address,
             taken.succeeds ? change(old, desired)
                            : tracer::value(old) +
                                  (spurious ? ", fails for no reason" : ", not " + tracer::value(expected)),
             text_of(order), remark, where);
    expected = old;
    end_of_step();
    return taken.succeeds;
}

void engine::fence(std::memory_order order, source where) {
    if (order == std::memory_order_relaxed) return;
    const footprint f{.fence = is_sc(order)};
    // Only a sequentially consistent fence touches what other threads see.
    if (f.fence) {
        announce(f, "fence");
        executed(f);
    }
    memory_.fence(me().memory, order);
    if (trace_.on) tell("fence", nullptr, "", text_of(order), "", where);
    end_of_step();  // what follows is not part of what a release fence publishes
}

void engine::relax(source where) {
    close_window();
    announce({}, "cpu_relax");
    executed({});
    if (trace_.on) tell("cpu_relax", nullptr, "", "", "", where);
    end_of_step();
}

}  // namespace tocsin::model
