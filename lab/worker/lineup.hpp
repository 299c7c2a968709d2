// SPDX-License-Identifier: Apache-2.0
// `lineup`: the contestants of the worker that is being built.
//
// Each worker has a lineup of its own: a header of lineups/, or the one that libraries.cmake generates. The build
// (lab/CMakeLists.txt) compiles every scenario once for each worker, and names that worker's header in LAB_LINEUP.
#pragma once

#include "registry.hpp"

#include LAB_LINEUP
