// SPDX-License-Identifier: Apache-2.0
// Waiting for several events at once, with descriptors.
#pragma once

#include "../contestant.hpp"
#include "descriptors.hpp"

#include <cstddef>
#include <memory>
#include <vector>

#include <poll.h>

namespace lab {

// An eventfd each, and poll() over all.
class eventfds_polled {
public:
    explicit eventfds_polled(std::size_t count) {
        for (std::size_t i = 0; i != count; ++i) {
            events_.push_back(std::make_unique<eventfd_descriptor>(false));
            wanted_.push_back({events_.back()->to_poll(), POLLIN, 0});
        }
    }

    void set(std::size_t which) { events_[which]->set(); }
    std::size_t wait_any() {
        for (;;) {
            if (poll(wanted_.data(), wanted_.size(), -1) < 1) continue;
            for (std::size_t i = 0; i != wanted_.size(); ++i) {
                if (wanted_[i].revents != 0 && events_[i]->take()) return i;
            }
        }
    }

private:
    std::vector<std::unique_ptr<eventfd_descriptor>> events_;
    std::vector<pollfd> wanted_;
};

struct eventfd_poll {
    static constexpr contestant_info info{
        .name = "eventfd_poll",
        .label = "eventfds + poll",
        .role = role::peer,
        .about = "an eventfd for each event, poll() over all of them",
        .limits = "a descriptor each; no way to wait for all",
        .no_manual_event = "is a way to wait for several",
        .no_auto_event = "is a way to wait for several",
        .no_lock = "is a way to wait for several",
        .no_address_wait = "is a way to wait for several",
    };
    using event_group = eventfds_polled;
};

}  // namespace lab
