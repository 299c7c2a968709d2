# SPDX-License-Identifier: Apache-2.0
# What `cpack` packs: the installed tree as a .tar.gz and, on Windows, a .zip. The names of the other kinds of packages
# are in docs/packaging.md.
set(CPACK_PACKAGE_NAME "tocsin")
set(CPACK_PACKAGE_VENDOR "the tocsin authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_STRIP_FILES OFF)
if(WIN32)
    set(CPACK_GENERATOR ZIP)
else()
    set(CPACK_GENERATOR TGZ)
endif()
# `cpack --config CPackSourceConfig.cmake`: the sources, without what was built.
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME "tocsin-${PROJECT_VERSION}")
set(CPACK_SOURCE_IGNORE_FILES "^${PROJECT_SOURCE_DIR}/(build|[.]venv|[.]git)(/|$)" "/__pycache__/")
include(CPack)
