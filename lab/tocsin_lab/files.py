# SPDX-License-Identifier: Apache-2.0
"""Files are written whole or not at all, and only regular files are ever replaced."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


def write_whole(path: Path, write_to: Callable[[TextIO], object]) -> None:
    """Writes a file beside the path and renames it. A link stays, and its target is replaced. OSError if that is not
    possible."""
    path = path.resolve()
    if reason := why_not_replaceable(path):
        raise OSError(errno.EINVAL, reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def why_not_replaceable(path: Path) -> str | None:
    """A device, a pipe or a folder is never replaced by a file. None: there is a regular file, or nothing."""
    try:
        if path.is_dir():
            return "Is a directory"
        return "Is no regular file" if path.exists() and not path.is_file() else None
    except OSError as error:
        return reason_of(error)


def why_not_writable(path: Path) -> str | None:
    """Ask before anything is measured for that file. None: no obstacle is known."""
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return why_not_replaceable(path)
    except OSError as error:
        return reason_of(error)


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)
