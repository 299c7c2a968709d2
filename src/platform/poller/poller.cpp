// The poller of the library: the mechanism that the build has chosen.
#include "platform/poller/poller.hpp"

namespace tocsin::platform {

namespace chosen = TOCSIN_POLLER_CHOSEN;

taken_doorbell take_doorbell() noexcept { return chosen::take_doorbell(); }
void give_doorbell_back(doorbell_id bell) noexcept { chosen::give_doorbell_back(bell); }
void ring_doorbell(doorbell_id bell) noexcept { chosen::ring_doorbell(bell); }
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
    return chosen::poll(what, bell, until);
}
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept { return chosen::open_poll_set(error); }
int open_flag(int (&ends)[2]) noexcept { return chosen::open_flag(ends); }
void poller_after_fork() noexcept { chosen::poller_after_fork(); }
void*& poller_doorbells() noexcept { return chosen::poller_doorbells(); }

}  // namespace tocsin::platform
