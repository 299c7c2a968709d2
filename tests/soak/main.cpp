// SPDX-License-Identifier: Apache-2.0
// All primitives mixed in one process, under everything that a machine does to threads at bad moments, with books that
// must balance. docs/soak.md describes what it does and how to read its table.
//
//     tocsin_soak [minutes] [seed] [scene]
//
// A run is a sequence of acts of about a second. An act plays a few scenes at once, drawn at random, with four to eight
// threads for each processor. When it is over, all its threads end, and every book is checked. One act in four plays
// only duels, with one thread for each processor: two threads that are to meet within nanoseconds must run at the same
// time.
#include "complaints.hpp"
#include "crew.hpp"
#include "disturbances.hpp"
#include "report.hpp"
#include "scene.hpp"
#include "sleepers.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>

namespace soak {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

volatile sig_atomic_t interrupted = 0;

struct arguments {
    double minutes = 1;
    std::uint64_t seed = std::random_device{}();
    std::string_view scene;  // part of the names of those to play
};

template <class Number>
bool read_number(std::string_view text, Number& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
}

std::optional<arguments> read_arguments(int count, char** texts) {
    arguments given;
    const char* wrong = nullptr;
    constexpr double a_year = 525'600;
    if (count > 4) {
        wrong = "too many arguments";
    } else if (count > 1 &&
               !(read_number(texts[1], given.minutes) && given.minutes > 0 && given.minutes <= a_year)) {
        wrong = "the minutes are a number above 0, such as 1 or 0.5";
    } else if (count > 2 && !read_number(texts[2], given.seed)) {
        wrong = "the seed is a whole number of at most 64 bits";
    }
    if (count > 3) given.scene = texts[3];
    if (wrong == nullptr) return given;
    std::fprintf(stderr, "soak: %s\nusage: %s [minutes] [seed] [scene]\n", wrong, texts[0]);
    return std::nullopt;
}

class run {
public:
    explicit run(const arguments& given)
        : random_(0),
          end_(begin_ + std::chrono::duration_cast<steady_clock::duration>(
                            std::chrono::duration<double, std::ratio<60>>(given.minutes))) {
        for (const auto& some :
             {duel_scenes(), event_scenes(), gate_scenes(), one_shot_scenes(), barrier_scenes(),
              address_scenes(), lock_scenes(), semaphore_scenes(), condition_scenes(), channel_scenes(),
              commit_scenes(), handler_scenes(), short_life_scenes(), many_scenes(), set_scenes(),
              await_scenes(), operation_scenes(), outside_scenes(), shared_scenes()}) {
            for (const scene_kind& each : some) {
                if (std::string_view(each.name).find(given.scene) == std::string_view::npos) continue;
                kinds_.push_back(each);
                books_.emplace_back(each.name);
            }
        }
        has_duels_ = !kinds_.empty() && kinds_.front().name == std::string_view("duels of two threads");
        books_.emplace_back("set() in signal handlers");
    }

    bool has_scenes() const { return !kinds_.empty(); }

    bool perform() {
        sleepers resting;
        do {
            act();
        } while (!is_over() && complaints().empty());
        const sleepers_report rested = resting.wake();
        return print_table(books_, steady_clock::now() - begin_, rested, interrupted != 0);
    }

private:
    static constexpr std::size_t duels = 0;  // index among all kinds: the constructor lists it first

    bool is_over() const { return interrupted != 0 || steady_clock::now() >= end_; }

    // The next kind; all kinds come equally often.
    std::size_t deal() {
        if (deck_.empty()) {
            for (std::size_t i = 0; i < kinds_.size(); ++i) {
                deck_.insert(deck_.begin() + static_cast<std::ptrdiff_t>(random_.below(deck_.size() + 1)), i);
            }
        }
        const std::size_t kind = deck_.back();
        deck_.pop_back();
        return kind;
    }

    void act() {
        std::deque<std::unique_ptr<scene>> scenes;
        crew hands;
        const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
        const std::size_t wanted = processors * (4 + random_.below(5));
        const auto begin_scene = [&](std::size_t kind) {
            scenes.push_back(kinds_[kind].make(random_));
            scenes.back()->enter(hands, books_[kind]);
        };
        const bool only_duels = has_duels_ && (kinds_.size() == 1 || acts_++ % 4 == 3);
        if (only_duels) {
            do begin_scene(duels);
            while (hands.size() + 2 <= processors);
        } else {
            // There may be few kinds, of which no more can be played at once.
            for (std::size_t idle = 0; hands.size() < wanted && idle <= kinds_.size();) {
                const std::size_t before = hands.size();
                begin_scene(deal());
                idle = hands.size() == before ? idle + 1 : 0;
            }
        }
        if (only_duels) {  // a thread that is moved or hit by a signal would miss the other
            look(hands);
            spread(hands);
        } else {
            disturb(hands, books_.back(), outside_);
        }

        const auto curtain = std::min(end_, steady_clock::now() + milliseconds(400 + random_.below(1'600)));
        while (steady_clock::now() < curtain && interrupted == 0 && complaints().empty()) look(hands);
        hands.end();
        for (auto& each : scenes) each->end();
        while (!hands.have_finished()) look(hands);
        for (auto& each : scenes) each->check();
    }

    // Naps, and looks after the threads ten times a second.
    void look(crew& hands) {
        std::this_thread::sleep_for(10ms);
        if (steady_clock::now() < next_look_) return;
        next_look_ = steady_clock::now() + 100ms;
        hands.look_after();
        progress_.look(books_, steady_clock::now() - begin_, hands.size());
    }

    support::random_source random_;
    const steady_clock::time_point begin_ = steady_clock::now();
    const steady_clock::time_point end_;
    std::vector<scene_kind> kinds_;
    bool has_duels_ = false;
    std::deque<book> books_;  // one for each kind, and a last one for the signals
    book outside_{"disturbances"};
    std::vector<std::size_t> deck_;
    unsigned acts_ = 0;
    progress progress_;
    steady_clock::time_point next_look_ = begin_;
};

}  // namespace
}  // namespace soak

int main(int count, char** texts) {
    const auto given = soak::read_arguments(count, texts);
    if (!given) return 2;
    for (const int number : {SIGINT, SIGTERM}) {
        struct sigaction action{};
        action.sa_handler = [](int) { soak::interrupted = 1; };
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // a second signal ends it at once
        sigaction(number, &action, nullptr);
    }
    setenv("TOCSIN_SEED", std::to_string(given->seed).c_str(), 1);  // random_source reads it
    soak::run whole(*given);
    if (!whole.has_scenes()) {
        std::fprintf(stderr, "soak: no scene has \"%s\" in its name (docs/soak.md has a table)\n", texts[3]);
        return 2;
    }
    soak::print_header(given->minutes, given->seed, given->scene);
    return whole.perform() ? 0 : 1;
}
