// SPDX-License-Identifier: Apache-2.0
// Windows: one poll. windows_poll.cpp explains how a poll works, and why no wake-up is lost.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/windows.hpp"

#include <span>

#include <winsock2.h>

namespace tocsin::platform {

// Works like poller_backend::poll. `bell` is null if the poll has no doorbell. `storage` has room for as many entries
// as `what`.
poll_result poll_with(std::span<poll_entry> what, doorbell* bell, const deadline& until,
                      WSAPOLLFD* storage) noexcept;

}  // namespace tocsin::platform
