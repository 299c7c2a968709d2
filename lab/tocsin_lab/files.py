"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


def write_whole(path: Path, write_to: Callable[[TextIO], object]) -> None:
    """Writes a file beside the path and renames it. OSError if that is not possible."""
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


def why_not_writable(path: Path) -> str | None:
    """Ask before anything is measured for that file. None: no obstacle is known."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return "Is a directory" if path.is_dir() else None
    except OSError as error:
        return reason_of(error)


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)
