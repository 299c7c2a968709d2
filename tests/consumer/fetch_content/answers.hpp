// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tocsin/event.hpp>

// Waits until somebody has set `ready`, then answers.
int answer_after(tocsin::manual_reset_event& ready);
