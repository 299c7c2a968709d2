// SPDX-License-Identifier: Apache-2.0
// For Windows. Two threads pass a turn to and fro: each waits until the word has changed, pauses for a random time,
// changes the word and notifies. Four such pairs play at once, so that threads lose their processor at any point. A
// watcher looks whether a pair has stopped. A hung thread sleeps although the word has the value that it waits for. A
// further notification frees it.
#include "reproduction.hpp"

#include <tocsin/address.hpp>

#include <array>
#include <atomic>
#include <vector>

#include <windows.h>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

using word = std::atomic<std::uint32_t>;

struct standard {
    static void wait(word& on, std::uint32_t old) { on.wait(old); }
    static void wake(word& on) { on.notify_one(); }
};

struct ours {
    static void wait(word& on, std::uint32_t old) { (void)tocsin::wait_until_changed(&on, old); }
    static void wake(word& on) { (void)tocsin::wake_by_address_one(&on); }
};

// The system does not say of a thread whether it sleeps, only how long it has run.
std::uint64_t time_run(HANDLE thread) {
    FILETIME created;
    FILETIME ended;
    FILETIME in_kernel;
    FILETIME in_user;
    if (GetThreadTimes(thread, &created, &ended, &in_kernel, &in_user) == 0)
        return static_cast<std::uint64_t>(clock::now().time_since_epoch().count());  // not the same twice
    const auto ticks = [](const FILETIME& of) {
        return (std::uint64_t{of.dwHighDateTime} << 32) + of.dwLowDateTime;
    };
    return ticks(in_kernel) + ticks(in_user);
}

struct alignas(64) place {
    std::atomic<HANDLE> thread{nullptr};
    std::atomic<bool> waiting{false};
    std::atomic<bool> ended{false};
};

template <class Kind>
struct game {
    // libstdc++ lets atomics share 16 condition variables, by bits 2 to 5 of the address. Of two pairs that share a
    // condition variable, each wakes the other. So each pair uses another word of its line.
    alignas(64) std::array<word, 16> line{};
    word& turn = line[used++ % line.size()];  // of the first player if it is even
    static inline std::size_t used = 0;
    std::array<place, 2> places;
    std::atomic<bool> over{false};

    // A player looks at the time, too: while all play, Wine may let the watcher sleep for seconds too long.
    void play(unsigned me, const budget& time) {
        std::minstd_rand random(me + 1);
        places[me].thread = OpenThread(THREAD_QUERY_INFORMATION, FALSE, GetCurrentThreadId());
        while (!over && !time.spent()) {
            const std::uint32_t now = turn;
            if (now % 2 != me) {
                places[me].waiting = true;
                Kind::wait(turn, now);
                places[me].waiting = false;
                continue;
            }
            pause_for(random() % (1u << random() % 16));  // short and long pauses
            turn = now + 1;
            Kind::wake(turn);
        }
        turn = turn + 1;  // neither value of `turn` keeps the other asleep
        Kind::wake(turn);
        places[me].ended = true;
    }

    // It is the player's turn, and it sleeps in its wait for this turn.
    bool lost_a_wake_up() {
        const std::uint32_t before = turn;
        const place& one = places[before % 2];
        const std::uint64_t run = time_run(one.thread);
        return holds_for_30_looks([&] { return time_run(one.thread) == run; },
                                  [&] { return one.waiting && turn == before; });
    }

    // Called by the watcher every 10 ms. Returns whether it has found a lost wake-up.
    bool look() {
        const std::uint32_t now = turn;
        if (now != last || over) {
            last = now;
            moved = clock::now();
            return false;
        }
        if (clock::now() - moved <= 500ms) return false;
        const bool found = lost_a_wake_up();
        Kind::wake(turn);
        moved = clock::now();
        return found;
    }

    // Only the watcher uses these.
    std::uint32_t last = 0;
    clock::time_point moved = clock::now();
};

template <class Kind>
outcome watch(double seconds) {
    static std::array<game<Kind>, 4> games;
    const budget time(seconds);
    std::vector<std::jthread> players;
    for (game<Kind>& each : games)
        for (const unsigned me : {0u, 1u}) players.emplace_back([&each, &time, me] { each.play(me, time); });
    outcome found;
    for (; !time.spent(); std::this_thread::sleep_for(10ms))
        for (game<Kind>& each : games) found.seen += each.look();
    for (game<Kind>& each : games) {
        found.tries += each.turn;
        each.over = true;
    }
    // A player may still lose the wake-up by which the other one ends.
    for (game<Kind>& each : games) {
        while (!each.places[0].ended || !each.places[1].ended) {
            Kind::wake(each.turn);
            std::this_thread::sleep_for(1ms);
        }
    }
    return found;
}

std::string system_here() {
    const HMODULE kernel = GetModuleHandleA("ntdll.dll");
    using ask = const char* (*)();
    const auto version = reinterpret_cast<ask>(  // NOLINT: there is no other way to a function of a DLL
        reinterpret_cast<void*>(GetProcAddress(kernel, "wine_get_version")));
    return version != nullptr ? std::string("Wine ") + version() : "Windows";
}

template <class Kind>
outcome play(double seconds, const std::string& version) {
    outcome found = watch<Kind>(seconds);
    found.version = version;
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    return run(
        count, arguments,
        [](double seconds) { return play<standard>(seconds, libstdcxx() + ", " + system_here()); },
        [](double seconds) { return play<ours>(seconds, "wait_until_changed"); });
}
