include(CMakeFindDependencyMacro)
find_dependency(tocsin)
include("${CMAKE_CURRENT_LIST_DIR}/answers-targets.cmake")
