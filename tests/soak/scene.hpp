// SPDX-License-Identifier: Apache-2.0
// A scene: a few threads at work on one kind of primitive, whose books must balance at the end.
#pragma once

#include "crew.hpp"

#include <memory>
#include <vector>

namespace soak {

class scene {
public:
    virtual ~scene() = default;

    // Starts its threads, which do rounds until the act is over, and then end.
    virtual void enter(crew& hands, book& counted) = 0;

    // Called when the act is over: wakes the threads that wait for something that will no longer happen.
    virtual void end() {}

    // Called when its threads have ended: complains about everything that is not as it must be.
    virtual void check() = 0;
};

struct scene_kind {
    const char* name;
    std::unique_ptr<scene> (*make)(support::random_source&);
};

// Each file of scenes lists its kinds. Called before the first thread is started.
std::vector<scene_kind> event_scenes();
std::vector<scene_kind> duel_scenes();
std::vector<scene_kind> gate_scenes();
std::vector<scene_kind> one_shot_scenes();
std::vector<scene_kind> barrier_scenes();
std::vector<scene_kind> address_scenes();
std::vector<scene_kind> lock_scenes();
std::vector<scene_kind> semaphore_scenes();
std::vector<scene_kind> condition_scenes();
std::vector<scene_kind> channel_scenes();
std::vector<scene_kind> commit_scenes();
std::vector<scene_kind> handler_scenes();
std::vector<scene_kind> short_life_scenes();
std::vector<scene_kind> many_scenes();
std::vector<scene_kind> set_scenes();
std::vector<scene_kind> await_scenes();
std::vector<scene_kind> outside_scenes();
std::vector<scene_kind> shared_scenes();
std::vector<scene_kind> operation_scenes();

// How many threads a scene starts if it can work with any number.
inline int some_threads(support::random_source& random) { return 2 + static_cast<int>(random.below(4)); }

}  // namespace soak
