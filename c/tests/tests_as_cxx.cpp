// SPDX-License-Identifier: Apache-2.0
// The same tests, compiled as C++.
// NOLINTBEGIN(bugprone-suspicious-include): on purpose
#include "addresses.c"
#include "conditions.c"
#include "diagnose.c"
#include "errors.c"
#include "events.c"
#include "group_commit.c"
#include "operations.c"
#include "semaphores.c"
#include "sets.c"
#include "shared.c"
#include "tests.c"
#include "waits.c"
// NOLINTEND(bugprone-suspicious-include)
