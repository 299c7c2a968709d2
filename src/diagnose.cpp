// SPDX-License-Identifier: Apache-2.0
// Reads the lot and the lists of other waits (core/wait/diagnosed_wait.hpp), and keeps the names that users give to
// addresses.
//
// The names are in a table with a lock of its own (core/sync/names.hpp). Under the lock of a bucket or list, no code of
// the user runs, and nothing is allocated. So parked_waits() copies the waits into memory that it allocated before, and
// counts them. If the memory was too small, it allocates more and starts again.
//
// Fork: a thread of the parent may have held the lock of the names, in the middle of a change. In that case the child
// begins without names. It does not touch the old entries of the table, and does not even free them.
#include "core/lot/lot.hpp"
#include "core/lot/subscriber.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/lock_owners.hpp"
#include "core/sync/names.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/event_as_lock.hpp>
#include <tocsin/diagnose.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

namespace tocsin {
namespace {

// Guards core::name_chains.
constinit core::futex_lock names_lock;

void forget_half_a_name() noexcept {
    if (names_lock.is_free_now()) return;
    new (&names_lock) core::futex_lock;
    for (core::name_entry*& each : core::name_chains) each = nullptr;
}

// The link to the address's entry or, if there is none, the null link at the end of the chain. The caller holds the
// lock.
core::name_entry** find_name(const void* address) noexcept {
    core::name_entry** link = &core::name_chain_of(address);
    while (*link != nullptr && (*link)->address != address) link = &(*link)->next;
    return link;
}

const core::in_child resets_names(core::child_duty::names, forget_half_a_name);

void set_origin(parked_wait& of, const core::wait_origin& from) noexcept {
    using std::chrono::steady_clock;
    of.thread = from.thread;
    of.since = steady_clock::time_point(steady_clock::duration(from.since));
}

parked_wait as_parked(const core::wait_node& node) {
    using kind = parked_wait::kind;
    parked_wait result{};
    const auto number = static_cast<unsigned>(node.key.what);
    constexpr auto first_bit = static_cast<unsigned>(core::wait_kind::lock_bit_0);
    if (number >= first_bit) {
        result.what = kind::lock;
        result.bit = number - first_bit;
    } else if (node.use != detail::event_use::event) {
        result.what = node.use == detail::event_use::latch ? kind::latch : kind::barrier;
    } else {
        constexpr kind kinds[] = {kind::event, kind::address, kind::semaphore, kind::condition};
        result.what = kinds[number];
    }
    constexpr const char* types[] = {"event", "address", "lock",   "semaphore", "condition",
                                     "latch", "barrier", "source", "descriptor"};
    result.type = types[static_cast<unsigned>(result.what)];
    result.address = node.key.address;
    set_origin(result, node.origin);
    return result;
}

parked_wait as_parked(const core::diagnosed_wait& wait) {
    parked_wait result{};
    const source_label label = wait.label();
    result.what = parked_wait::kind::source;
    result.type = label.type;
    result.address = label.address;
    set_origin(result, wait.origin());
    return result;
}

// A thread's wait for a member of the wait_set in which it sleeps.
parked_wait as_parked(const core::wait_node& member, const core::wait_origin& from) {
    parked_wait result = as_parked(member);
    set_origin(result, from);
    return result;
}

parked_wait as_parked(const core::diagnosed_wait& poll, const platform::poll_entry& polled) {
    parked_wait result{};
    result.what = parked_wait::kind::descriptor;
    result.type = poll.label().type;
    result.bit = static_cast<unsigned>(polled.descriptor);
    set_origin(result, poll.origin());
    return result;
}

// Copies parked waits into the capacity that `waits` has. Counts all parked waits, even those that do not fit.
struct copy {
    std::vector<parked_wait>& waits;
    std::size_t seen = 0;

    template <class... Wait>
    void add(const Wait&... wait) {
        if (seen++ < waits.capacity()) waits.push_back(as_parked(wait...));
    }
    static void look(const core::wait_node& node, void* context) {
        core::wait_origin from;
        if (node.is_wait()) {
            static_cast<copy*>(context)->add(node);
        } else if (node.what == core::wait_node::kind::subscriber && node.subscribed->sleeps(from)) {
            static_cast<copy*>(context)->add(node, from);
        }
    }
    static void look(const core::diagnosed_wait& wait, void* context) {
        if (!wait.is_open()) return;
        if (wait.label().type != core::diagnosed_sleep::polls) return static_cast<copy*>(context)->add(wait);
        const auto& poll = static_cast<const core::diagnosed_sleep&>(wait);
        for (std::size_t i = 0; i != poll.polled_count; ++i)
            static_cast<copy*>(context)->add(wait, poll.polled[i]);
    }
};

void add_names(std::vector<parked_wait>& waits) {
    const std::lock_guard held(names_lock);
    for (parked_wait& each : waits) {
        const core::name_entry* found = *find_name(each.address);
        if (found == nullptr && each.what == parked_wait::kind::barrier)
            found = *find_name(static_cast<const char*>(each.address) - 1);  // its second gate
        if (found != nullptr) each.name = found->text.get();
    }
}

std::string pointer(const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    return text;
}

bool is_control(char one) { return static_cast<unsigned char>(one) < 0x20; }

// The size of the character in UTF-8 with which the text begins; 0 if it begins with none.
std::size_t size_of_first(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
    for (std::size_t i = 1; i != size; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    // Not the shortest form of its character, half of a pair of UTF-16, or beyond the last character.
    const unsigned second = byte(1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90)) {
        return 0;
    }
    return size;
}

// The text as a string of JSON. A byte that belongs to no character in UTF-8 becomes the replacement character.
std::string json_string(std::string_view text) {
    std::string result = "\"";
    while (!text.empty()) {
        const std::size_t size = size_of_first(text);
        if (size == 0) {
            result += "\\ufffd";
        } else if (is_control(text[0])) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(text[0]));
            result += code;
        } else {
            if (text[0] == '"' || text[0] == '\\') result += '\\';
            result += text.substr(0, size);
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return result += '"';
}

// In one line: with a question mark in place of each control character.
std::string in_a_line(std::string text) {
    std::ranges::replace_if(text, is_control, '?');
    return text;
}

// With a decimal point in every locale. Below zero if the wait was parked after the caller read the clock.
std::string seconds_since(std::chrono::steady_clock::time_point since,
                          std::chrono::steady_clock::time_point now) {
    const long long passed = std::chrono::round<std::chrono::milliseconds>(now - since).count();
    const long long all = passed < 0 ? -passed : passed;
    char text[48];
    std::snprintf(text, sizeof text, "%s%lld.%03lld", passed < 0 ? "-" : "", all / 1000, all % 1000);
    return text;
}

}  // namespace

std::size_t waiting_on(const volatile void* address) noexcept {
    std::size_t count = 0;
    const auto* const plain = const_cast<const void*>(address);
    for (unsigned kind = 0; kind != core::wait_kinds; ++kind) {
        core::locked_queue({plain, static_cast<core::wait_kind>(kind)})
            .for_each([&](const core::wait_node& node) {
                if (node.is_wait()) ++count;
            });
    }
    struct counted {
        const void* address;
        std::size_t& count;
    } listed{plain, count};
    core::for_each_diagnosed(
        [](const core::diagnosed_wait& wait, void* context) {
            const auto& look = *static_cast<counted*>(context);
            if (wait.is_open() && wait.label().address == look.address && wait.label().address != nullptr)
                ++look.count;
        },
        &listed);
    return count;
}

std::vector<parked_wait> parked_waits() {
    std::vector<parked_wait> waits;
    for (;;) {
        copy all{waits};
        core::for_each_parked(copy::look, &all);
        core::for_each_diagnosed(copy::look, &all);
        if (all.seen <= waits.capacity()) break;
        waits.clear();
        waits.reserve(all.seen + all.seen / 4);
    }
    for (parked_wait& each : waits) {
        if (each.what == parked_wait::kind::lock) each.owner = core::lock_owner(each.address, each.bit);
        if (each.what == parked_wait::kind::event)
            each.owner = core::lock_owner(each.address, detail::event_as_lock);
    }
    add_names(waits);
    std::ranges::sort(waits, {}, &parked_wait::since);
    return waits;
}

std::vector<std::vector<std::uint64_t>> deadlocks(const std::vector<parked_wait>& waits) {
    std::map<std::uint64_t, std::size_t> waits_of;
    for (const parked_wait& each : waits) ++waits_of[each.thread];
    std::map<std::uint64_t, std::uint64_t> waits_for;  // a thread waits for one lock at most
    for (const parked_wait& each : waits) {
        // A thread that waits for several things may not need the event: another of them may end its wait.
        const bool needs_it = each.what == parked_wait::kind::lock || waits_of[each.thread] == 1;
        if (each.owner != 0 && needs_it) waits_for[each.thread] = each.owner;
    }
    std::vector<std::vector<std::uint64_t>> cycles;
    while (!waits_for.empty()) {
        std::vector<std::uint64_t> path;
        std::uint64_t thread = waits_for.begin()->first;
        for (auto next = waits_for.find(thread); next != waits_for.end(); next = waits_for.find(thread)) {
            path.push_back(thread);
            thread = next->second;
            waits_for.erase(next);
        }
        if (const auto begin = std::ranges::find(path, thread); begin != path.end())
            cycles.emplace_back(begin, path.end());
    }
    return cycles;
}

std::string describe_parked_waits() {
    const auto now = std::chrono::steady_clock::now();
    const std::vector<parked_wait> waits = parked_waits();
    std::string text;
    for (const parked_wait& each : waits) {
        const bool has_number = each.what == parked_wait::kind::descriptor;
        text +=
            in_a_line(each.type) + (' ' + (has_number ? std::to_string(each.bit) : pointer(each.address)));
        if (each.what == parked_wait::kind::lock) text += " bit " + std::to_string(each.bit);
        if (!each.name.empty()) text += " '" + in_a_line(each.name) + "'";
        text += ": thread " + std::to_string(each.thread) + ", for " + seconds_since(each.since, now) + " s";
        if (each.owner != 0) text += ", held by thread " + std::to_string(each.owner);
        text += '\n';
    }
    for (const auto& cycle : deadlocks(waits)) {
        text += "deadlock: thread " + std::to_string(cycle.front());
        for (std::size_t i = 1; i <= cycle.size(); ++i)
            text += " waits for a lock of thread " + std::to_string(cycle[i % cycle.size()]) +
                    (i == cycle.size() ? "\n" : ", which");
    }
    return text;
}

std::string parked_waits_as_json() {
    const auto now = std::chrono::steady_clock::now();
    const std::vector<parked_wait> waits = parked_waits();
    std::string text = "{\"parked_waits\":[";
    const char* between = "";
    for (const parked_wait& each : waits) {
        text += std::exchange(between, ",");
        text += "{\"type\":" + json_string(each.type);
        text += each.what == parked_wait::kind::descriptor
                    ? ",\"descriptor\":" + std::to_string(each.bit)
                    : ",\"address\":" + json_string(pointer(each.address));
        if (each.what == parked_wait::kind::lock) text += ",\"bit\":" + std::to_string(each.bit);
        if (!each.name.empty()) text += ",\"name\":" + json_string(each.name);
        text += ",\"thread\":" + std::to_string(each.thread);
        if (each.owner != 0) text += ",\"owner\":" + std::to_string(each.owner);
        text += ",\"seconds\":" + seconds_since(each.since, now) + "}";
    }
    text += "],\"deadlocks\":[";
    between = "";
    for (const auto& cycle : deadlocks(waits)) {
        text += std::exchange(between, ",");
        char bracket = '[';
        for (const std::uint64_t thread : cycle) text += std::exchange(bracket, ',') + std::to_string(thread);
        text += ']';
    }
    return text + "]}";
}

void name_address(const volatile void* address, std::string name) {
    const auto* const plain = const_cast<const void*>(address);
    std::unique_ptr<core::name_entry> gone;  // freed without the lock
    std::unique_ptr<core::name_entry> made;
    if (!name.empty()) {
        made = std::make_unique<core::name_entry>();
        made->address = plain;
        made->text = std::make_unique<char[]>(name.size() + 1);
        std::ranges::copy(name, made->text.get());
    }
    const std::lock_guard held(names_lock);
    core::name_entry** const link = find_name(plain);
    if (*link != nullptr) {
        gone.reset(*link);
        *link = gone->next;
    }
    if (made != nullptr) {
        made->next = *link;
        *link = made.release();
    }
}

}  // namespace tocsin
