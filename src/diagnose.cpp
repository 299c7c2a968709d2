// Reads the lot, and keeps the names that users give to addresses.
//
// The names are in a map with a lock of its own. Under a bucket's lock, no code of the user runs and nothing is
// allocated. So the nodes are counted first, and then copied into memory that was allocated before.
//
// Fork: a thread of the parent may have held the lock of the names, in the middle of a change. In that case the child
// begins without names. It does not touch what is left of the map, and does not even destroy it.
#include "core/lot/lot.hpp"
#include "core/sync/futex_lock.hpp"
#include "platform/system/system.hpp"

#include <tocsin/diagnose.hpp>

#include <cstdio>
#include <map>
#include <mutex>
#include <new>

namespace tocsin {
namespace {

using name_map = std::map<const void*, std::string>;

// The map is never destroyed, since threads may wait after main, and others may ask about them.
struct names {
    core::futex_lock lock;
    name_map* of = nullptr;  // made by the first name
};
constinit names all_names;

void forget_half_a_name() noexcept {
    if (!all_names.lock.is_free_now()) new (&all_names) names;
}

struct at_fork {
    at_fork() noexcept { platform::on_fork_in_child(forget_half_a_name); }
};
const at_fork resets_names;

parked_wait as_parked(const core::wait_node& node) {
    parked_wait result{};
    const auto kind = static_cast<unsigned>(node.key.what);
    constexpr auto first_bit = static_cast<unsigned>(core::wait_kind::lock_bit_0);
    if (kind >= first_bit) {
        result.what = parked_wait::kind::lock;
        result.bit = kind - first_bit;
    } else {
        constexpr parked_wait::kind kinds[] = {parked_wait::kind::event, parked_wait::kind::address,
                                               parked_wait::kind::semaphore};
        result.what = kinds[kind];
    }
    result.address = node.key.address;
    result.thread = node.thread;
    result.since = std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(node.since));
    return result;
}

// Copies parked waits into the capacity that `waits` has. Counts all parked waits, even those that do not fit.
struct copy {
    std::vector<parked_wait>& waits;
    std::size_t seen = 0;

    static void look(const core::wait_node& node, void* context) {
        auto& self = *static_cast<copy*>(context);
        if (!node.is_wait()) return;
        if (self.seen++ < self.waits.capacity()) self.waits.push_back(as_parked(node));
    }
};

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
    return count;
}

std::vector<parked_wait> parked_waits() {
    std::vector<parked_wait> waits;
    for (;;) {
        copy all{waits};
        core::for_each_parked(copy::look, &all);
        if (all.seen <= waits.capacity()) break;
        waits.clear();
        waits.reserve(all.seen + all.seen / 4);
    }
    const std::lock_guard held(all_names.lock);
    if (all_names.of == nullptr) return waits;
    for (parked_wait& each : waits) {
        if (const auto found = all_names.of->find(each.address); found != all_names.of->end())
            each.name = found->second;
    }
    return waits;
}

std::string describe_parked_waits() {
    constexpr const char* kinds[] = {"event", "address", "lock", "semaphore"};
    const auto now = std::chrono::steady_clock::now();
    std::string text;
    for (const parked_wait& each : parked_waits()) {
        char line[160];
        std::snprintf(line, sizeof line, "%s %p", kinds[static_cast<unsigned>(each.what)], each.address);
        text += line;
        if (each.what == parked_wait::kind::lock) text += " bit " + std::to_string(each.bit);
        if (!each.name.empty()) text += " '" + each.name + "'";
        std::snprintf(line, sizeof line, ": thread %llu, for %.3f s\n",
                      static_cast<unsigned long long>(each.thread),
                      std::chrono::duration<double>(now - each.since).count());
        text += line;
    }
    return text;
}

void name_address(const volatile void* address, std::string name) {
    const std::lock_guard held(all_names.lock);
    const auto* const plain = const_cast<const void*>(address);
    if (name.empty()) {
        if (all_names.of != nullptr) all_names.of->erase(plain);
        return;
    }
    if (all_names.of == nullptr) all_names.of = new name_map;
    all_names.of->insert_or_assign(plain, std::move(name));
}

}  // namespace tocsin
