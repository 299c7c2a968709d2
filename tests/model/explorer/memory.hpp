// SPDX-License-Identifier: Apache-2.0
// The memory of one run.
//
// State. Every atomic object is a location with a history: its messages in modification order. Each message has a
// value, a timestamp and a view, which is what an acquire load of the message learns. A thread has three views:
//   current     the thread may not read anything older than this;
//   unacquired  what an acquire fence would add: the views of what the thread has read without acquiring;
//   released    what the thread's relaxed stores carry: `current` at its last release fence.
// One more view is global: `sc_`.
//
// A load may take any message not older than current (coherence), and with seq_cst none older than sc_ at that
// location. The load raises current there, and with acquire joins the message's view. A store is put at the end of the
// history. With store_insertion a store may also be put before newer messages that its thread has not seen, but never
// between a message and the read-modify-write that read it. A store's view is current (release) or released (relaxed).
// A read-modify-write reads a message and is put directly after it. Its view includes that of the message it read. That
// is the release sequence of C++20, which runs through read-modify-writes only.
//
// Sequentially consistent. The order S of the standard is the order of execution. A seq_cst access at a location raises
// sc_ there. It neither takes a message older than sc_ nor puts one before it. A seq_cst fence is an acquire and a
// release fence, takes sc_ into current, and puts current into sc_: [atomics.order] 4.1 to 4.4, case by case. The fence
// passes on knowledge of memory, not happens-before, so plain data stay racy across it.
//
// Bounds. A load goes at most stale_distance messages back, and a thread takes the same outdated message at most
// stale_repeats times. The reasons are that the standard asks for stores to become visible in finite time, and that
// spinning threads have to end. A report says where a bound made a difference.
//
// Redundancy. Reading an outdated message, or placing a store before a newer one, is a new outcome only if the newer
// store had to be executed first. That is so if conflicts put the newer store into the past of this step, or of the
// message taken. Otherwise a schedule in which this step comes first has the same outcome, so the depth-first searches
// leave the choice out. If preemptions are bounded, those of that schedule count, too. reduction_test.cpp compares with
// the full search on random programs.
//
// Not modelled. Load buffering: a load never takes the value of a store that is executed later. So po and rf are
// acyclic (as in RC11), which also excludes out-of-thin-air values. consume is acquire. S agrees with happens-before
// even where C++20 asks only for strongly-happens-before, so outcomes like Z6.U are not produced. The model refuses
// accesses of different sizes to one object.
#pragma once

#include "options.hpp"
#include "view.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace tocsin::model {

using word = std::uint64_t;

struct object {
    const void* address;
    unsigned size;
};

struct message {
    word value = 0;
    timestamp at = 0;
    int writer = -1;
    unsigned step = 0;
    std::uint32_t writer_step_clock = 0;  // the chooser's number of that step
    bool claimed = false;                 // whether a read-modify-write follows it directly
    view carried;
};

struct location {
    object where{};
    bool alive = false;
    bool found = false;  // whether it was met at its first use, not constructed in this run
    word initial = 0;
    int born_by = -1;
    std::uint32_t born_at = 0;
    std::size_t count = 0;         // of the messages in use; the others are spare
    std::vector<message> history;  // in modification order
    thread_clock touched{};        // each thread's last access
    std::source_location first_use;

    const message& newest() const noexcept { return history[count - 1]; }
    std::size_t index_of(timestamp t) const noexcept;
};

// A plain object shared by threads. The model never reorders its accesses; it only checks them for races.
struct cell {
    object where{};
    bool alive = false;
    bool found = false;
    int writer = -1;
    std::uint32_t written_at = 0;
    thread_mask readers = 0;  // since the last write
    thread_clock read_at{};   // of each reader
    std::unique_ptr<unsigned char[]> initial;
};

struct stale_mark {
    timestamp message = 0;
    unsigned times = 0;
};

struct thread_memory {
    int id = 0;
    view current;
    view unacquired;
    view released;
    std::vector<stale_mark> stale;  // by location

    void clear();
    std::uint32_t epoch() const noexcept { return current.clock[static_cast<std::size_t>(id)]; }
};

// Maps an address to the number of the object there.
class address_map {
public:
    int find(const void* address) const noexcept {
        const slot& s = slots_[probe(address)];
        return s.round == round_ ? s.number : -1;
    }
    void put(const void* address, int number);
    void clear();

private:
    struct slot {
        const void* address = nullptr;
        int number = -1;
        std::uint32_t round = 0;
    };
    std::size_t probe(const void* address) const noexcept {
        const auto x = reinterpret_cast<std::uintptr_t>(address);
        auto i = static_cast<std::size_t>((x * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);
        while (slots_[i].round == round_ && slots_[i].address != address) i = (i + 1) & (slots_.size() - 1);
        return i;
    }
    void grow();

    std::vector<slot> slots_ = std::vector<slot>(256);
    std::size_t used_ = 0;
    std::uint32_t round_ = 1;
};

class memory {
public:
    void start(const options& how);
    // Gives every object that existed before the run its first value back.
    void restore();

    // --- objects; the text, if any, says what is wrong ---
    int locate(object o, const std::source_location& where) {
        const int known = location_at_.find(o.address);
        return known >= 0 ? known : meet(o, where);
    }
    void construct(object o, word value, const thread_memory* by);
    const char* destroy(const void* address, const thread_memory& by);
    void forget(const void* address);
    const char* touch(int number, object o, const thread_memory& by);
    location& at(int number) { return *locations_[static_cast<std::size_t>(number)]; }

    void construct_cell(object o, const thread_memory* by);
    const char* read_cell(object o, const thread_memory& by);
    const char* write_cell(object o, const thread_memory& by, bool destroys = false);

    // --- accesses, once the engine has chosen a message ---
    // `before(k, m)` says whether the step that wrote m must be executed before this one anyway, if step k must. If it
    // need not, the search explores other schedules, in which this step is executed earlier. They show the outcomes in
    // which this step reads, or stores, before m.
    //
    // The messages that a load may take, newest first.
    template <class Before>
    const std::vector<int>& readable(const thread_memory& by, int number, std::memory_order o,
                                     Before&& before);
    // The messages that a read-modify-write may take, or that a store may directly follow.
    template <class Before>
    const std::vector<int>& placeable(const thread_memory& by, int number, std::memory_order o,
                                      Before&& before);

    word read(thread_memory& by, int number, int from, std::memory_order o);
    int write(thread_memory& by, int number, int behind, word value, std::memory_order o, unsigned step,
              std::uint32_t step_clock, bool rmw);
    void fence(thread_memory& by, std::memory_order o);

    bool out_of_reach = false;  // the bounds on stale reads made a difference
    bool worn_out = false;

    static word peek(object o) noexcept;
    static void poke(object o, word value) noexcept;

private:
    template <class Before>
    bool may_pass(const location& x, std::size_t behind, Before&& before) const;
    timestamp floor(const thread_memory& by, int number, std::memory_order o) const noexcept;
    int meet(object o, const std::source_location& where);
    cell& locate_cell(object o) {
        const int known = cell_at_.find(o.address);
        return known >= 0 ? cells_[static_cast<std::size_t>(known)] : meet_cell(o);
    }
    cell& meet_cell(object o);
    std::optional<timestamp> stamp_behind(const location& x, std::size_t index) const noexcept;

    options options_;
    std::vector<std::unique_ptr<location>> locations_;
    std::vector<cell> cells_;
    std::size_t location_count_ = 0;
    std::size_t cell_count_ = 0;
    address_map location_at_;
    address_map cell_at_;
    view sc_;
    std::vector<int> choices_;
};

constexpr bool acquires(std::memory_order o) noexcept {
    return o == std::memory_order_acquire || o == std::memory_order_consume ||
           o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}

constexpr bool releases(std::memory_order o) noexcept {
    return o == std::memory_order_release || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}

constexpr bool is_sc(std::memory_order o) noexcept { return o == std::memory_order_seq_cst; }

template <class Before>
bool memory::may_pass(const location& x, std::size_t behind, Before&& before) const {
    const std::size_t oldest = behind - std::min<std::size_t>(behind, options_.stale_distance);
    for (std::size_t newer = behind + 1; newer < x.count; ++newer) {
        bool ordered = false;
        for (std::size_t k = behind + 1; k-- > oldest && !ordered;)
            ordered = before(x.history[k].writer_step_clock, x.history[newer]);
        if (!ordered) return false;
    }
    return true;
}

template <class Before>
const std::vector<int>& memory::readable(const thread_memory& by, int number, std::memory_order o,
                                         Before&& before) {
    const location& x = at(number);
    const auto n = static_cast<std::size_t>(number);
    choices_.clear();
    const timestamp oldest = floor(by, number, o);
    const stale_mark mark = n < by.stale.size() ? by.stale[n] : stale_mark{};
    for (std::size_t i = x.count; i-- > 0 && x.history[i].at >= oldest;) {
        const bool passes = may_pass(x, i, before);
        if (x.count - 1 - i > options_.stale_distance) {
            out_of_reach |= passes;
            break;
        }
        if (!passes) continue;
        if (i + 1 < x.count && x.history[i].at == mark.message && mark.times >= options_.stale_repeats) {
            worn_out = true;
            break;  // a thread whose reads move forward does not return to messages that are older still
        }
        choices_.push_back(static_cast<int>(i));
    }
    return choices_;
}

template <class Before>
const std::vector<int>& memory::placeable(const thread_memory& by, int number, std::memory_order o,
                                          Before&& before) {
    const location& x = at(number);
    choices_.clear();
    const timestamp oldest = floor(by, number, o);
    for (std::size_t i = x.count; i-- > 0;) {
        const message& m = x.history[i];
        if (m.at < oldest) break;
        const bool room = !m.claimed && (i + 1 == x.count || stamp_behind(x, i)) && may_pass(x, i, before);
        if (x.count - 1 - i > options_.stale_distance) {
            out_of_reach |= room;
            break;
        }
        if (room) choices_.push_back(static_cast<int>(i));
        if (!options_.store_insertion) break;
    }
    return choices_;
}

}  // namespace tocsin::model
