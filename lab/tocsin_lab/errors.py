# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a way that the reader can mend, and the exit codes of the laboratory."""

import sys
from contextlib import suppress

REGRESSION = 1
BAD_REQUEST = 2
NOT_SAVED = 3
INTERRUPTED = 130


class LabError(Exception):
    """The text is for the reader. The command ends with BAD_REQUEST."""


def complain(text: str) -> None:
    """Prints to the error stream, and ignores that nobody may be reading it."""
    with suppress(OSError):
        print(f"lab: {text}", file=sys.stderr, flush=True)
