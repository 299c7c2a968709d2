# SPDX-License-Identifier: Apache-2.0
"""The chapters of the site that `./dev docs` makes. The reference is a further chapter, and the decisions are below
their README.md."""

CHAPTERS = {
    "Use it": ["docs/guide.md", "docs/coming_from.md", "docs/coming_from_epoll.md", "docs/coming_from_asio.md",
               "docs/coming_from_go.md", "docs/coming_from_rust.md", "docs/coming_from_between_processes.md",
               "docs/coming_from_questions.md",
               "win32/docs/porting_from_windows.md", "win32/docs/windows_differences.md", "docs/priorities.md",
               "docs/group_commit.md", "docs/between_processes.md", "docs/diagnosis.md", "c/docs/c.md", "docs/python.md",
               "docs/platforms.md", "docs/packaging.md"],
    "How it works": ["docs/design.md", "docs/proofs.md", "proofs/README.md", "docs/requirements.md",
                     "docs/traps.md", "docs/decisions/README.md"],
    "How fast": ["lab/README.md", "docs/benchmarking.md", "docs/scaling.md", "docs/soak.md"],
    "The project": ["docs/README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
}  # fmt: skip
