// SPDX-License-Identifier: Apache-2.0
// A number for everything of src/platform that copies of the library in a process share (layout_hash.hpp). Only copies
// with the same number share anything.
#pragma once

#include "platform/futex/futex.hpp"
#include "platform/poller/doorbells.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/layout_hash.hpp"

#include <cstdint>

namespace tocsin::platform {

#define TOCSIN_TEXT_OF(macro) TOCSIN_TEXT(macro)
#define TOCSIN_TEXT(text) #text

// This number depends on the futex and the poller in use, the layout of the doorbells, and how many slots a thread has.
// Some changes of the source do not alter this number, although a copy built before such a change does not understand a
// copy built after it. After such a change, raise the "1" in the text below. Examples are changes of:
// - the moment at which a ring strikes a doorbell (makes its object ready);
// - the numbers for the kinds of tables of sleepers (`kind` in wait_table.hpp);
// - on Windows, the entries of the list of threads that sleep on sockets (windows_poll.cpp).
inline constexpr std::uint64_t shared_layout =
    layout_hash("1 " TOCSIN_TEXT_OF(TOCSIN_FUTEX_CHOSEN) " " TOCSIN_TEXT_OF(TOCSIN_POLLER_CHOSEN))
        .add(doorbells_layout())
        .add(thread_slots)
        .value();

#undef TOCSIN_TEXT
#undef TOCSIN_TEXT_OF

}  // namespace tocsin::platform
