// SPDX-License-Identifier: Apache-2.0
// Two threads pass a turn to and fro: each waits until the word has changed, pauses for a random time, changes the word
// and notifies. Four such pairs play at once, so that threads lose their processor at any point. A watcher looks
// whether a pair has stopped: a thread then sleeps although the word has the value that it waits for.
#include "reproduction.hpp"

#include <tocsin/address.hpp>

#include <array>
#include <atomic>
#include <vector>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

struct player {
    std::atomic<pid_t> id{0};
    std::atomic<bool> waiting{false};
};

struct game {
    alignas(64) std::atomic<std::uint32_t> turn{0};  // of the first player if it is even
    std::array<player, 2> players;
    std::atomic<bool> over{false};

    void play(unsigned me) {
        std::minstd_rand random(me + 1);
        players[me].id = this_thread();
        while (!over) {
            const std::uint32_t now = turn;
            if (now % 2 != me) {
                players[me].waiting = true;
                (void)tocsin::wait_until_changed(&turn, now);
                players[me].waiting = false;
                continue;
            }
            pause_for(random() % (1u << random() % 16));  // short and long pauses
            turn = now + 1;
            (void)tocsin::wake_by_address_one(&turn);
        }
        turn = turn + 1;  // so that neither value keeps the other player asleep
        (void)tocsin::wake_by_address_all(&turn);
    }

    // Called every 10 ms. Returns whether a player sleeps in its wait although it has the turn.
    bool look() {
        const std::uint32_t now = turn;
        if (now != last) {
            last = now;
            moved = clock::now();
            return false;
        }
        if (clock::now() - moved <= 500ms) return false;
        const player& one = players[now % 2];
        const bool found = proven_to_hang(stat_of_thread(one.id), [&] { return one.waiting && turn == now; });
        (void)tocsin::wake_by_address_all(&turn);
        moved = clock::now();
        return found;
    }

    // Only the watcher uses these.
    std::uint32_t last = 0;
    clock::time_point moved = clock::now();
};

outcome play(double seconds) {
    static std::array<game, 4> games;
    std::vector<std::jthread> players;
    for (game& each : games)
        for (const unsigned me : {0u, 1u}) players.emplace_back([&each, me] { each.play(me); });
    outcome found{.version = "wait_until_changed"};
    for (const budget time(seconds); !time.spent(); std::this_thread::sleep_for(10ms))
        for (game& each : games) found.seen += each.look();
    for (game& each : games) {
        found.tries += each.turn;
        each.over = true;
    }
    return found;
}

}  // namespace

int main(int count, char** arguments) { return run(count, arguments, play); }
