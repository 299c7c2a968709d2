# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a way that the reader can mend, and the exit codes of the laboratory."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches

REGRESSION = 1
BAD_REQUEST = 2
NOT_SAVED = 3
INTERRUPTED = 130


class LabError(Exception):
    """The text is for the reader. The command ends with BAD_REQUEST."""


def unknown(what: str, names: Iterable[str], valid: Iterable[str]) -> str:
    """The refusal of names that do not exist. A name like one that does exist is a slip of the pen."""
    names, valid = list(names), list(valid)
    close = [found[0] for name in names if (found := get_close_matches(name, valid, 1))]
    meant = f" (did you mean {', '.join(close)}?)" if close else ""
    return f"unknown {what} {', '.join(names)}{meant}; valid: {', '.join(valid)}"


def complain(text: str) -> None:
    """Prints to the error stream, and ignores that nobody may be reading it."""
    with suppress(OSError):
        print(f"lab: {text}", file=sys.stderr, flush=True)
