#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clang 23's lifetime analysis verifies that a constructor keeps a reference that is marked [[clang::lifetimebound]], if
# the constructor gives the reference to a member. It can't verify the same mark if the constructor gives the reference to
# a base class or to another constructor of its class, although that constructor has the mark, too. In these two cases
# the analysis warns (-Wlifetime-safety-lifetimebound-violation), although both marks are right.
# Guessed before: that members, base classes and delegating constructors are followed alike.
# Seen with clang-tidy 23.1.4 (PyPI). Needs python3 with venv, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check clang-tidy==23.1.4
cat > marks.cpp <<'CODE'
#define BOUND [[clang::lifetimebound]]
struct pointer {
    explicit pointer(int& to BOUND) : to_(&to) {}
    int* to_;
};
struct with_member {
    explicit with_member(int& to BOUND) : member_(to) {}
    pointer member_;
};
struct with_base : pointer {
    explicit with_base(int& to BOUND) : pointer(to) {}
};
struct delegates {
    explicit delegates(int& to BOUND) : delegates(&to) {}
    explicit delegates(int* to BOUND) : to_(to) {}
    int* to_;
};
CODE
python/bin/clang-tidy --version | grep version
checks='-*,misc-unused-alias-decls,clang-diagnostic-lifetime-safety*'
said=$(python/bin/clang-tidy --quiet --checks="$checks" marks.cpp -- -std=c++20 -Wlifetime-safety \
           -Wlifetime-safety-lifetimebound-violation 2>&1 | grep "warning:" | sed "s|.*/marks|marks|")
echo "$said"
lines=$(echo "$said" | grep "could not verify" | cut -d: -f2 | tr '\n' ' ')
[ "$lines" = "11 14 " ] || { echo "changed: warnings for lines 11 and 14 were seen, now for: $lines"; exit 1; }
