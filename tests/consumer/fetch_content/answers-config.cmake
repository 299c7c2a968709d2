# SPDX-License-Identifier: Apache-2.0
include(CMakeFindDependencyMacro)
find_dependency(tocsin)
include("${CMAKE_CURRENT_LIST_DIR}/answers-targets.cmake")
